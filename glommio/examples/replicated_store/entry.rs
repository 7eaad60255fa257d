//! What a register has, and how it looks on the disk and in packets.

use std::hash::{DefaultHasher, Hasher};

const VALUES: usize = 25;
pub(crate) const ENTRY_BYTES: usize = 8 * (3 + VALUES);
pub(crate) const RECORD_BYTES: usize = ENTRY_BYTES + 8;

/// A key, a version, and a value, which stands there many times so that a part of it can be told from the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry([u64; 3 + VALUES]);

impl Entry {
    pub(crate) fn new(key: u64, version: (u64, u64), value: u64) -> Self {
        let mut words = [value; 3 + VALUES];
        (words[0], words[1], words[2]) = (key, version.0, version.1);
        Entry(words)
    }

    /// What is there before the first write.
    pub(crate) fn none(key: u64) -> Self {
        Entry::new(key, (0, 0), 0)
    }

    pub(crate) fn key(&self) -> u64 {
        self.0[0]
    }

    /// A count, and the client that has written it.
    pub(crate) fn version(&self) -> (u64, u64) {
        (self.0[1], self.0[2])
    }

    pub(crate) fn value(&self) -> u64 {
        let value = self.0[3];
        assert_eq!(self.0[3..], [value; VALUES], "the value is whole");
        value
    }

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        let (words, _) = bytes.as_chunks();
        Entry(std::array::from_fn(|at| u64::from_le_bytes(words[at])))
    }

    /// With a checksum.
    pub(crate) fn to_record(self) -> Vec<u8> {
        let mut bytes = self.to_bytes();
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        bytes
    }

    /// The entry of a record, and whether its checksum is right.
    pub(crate) fn from_record(record: &[u8]) -> (Self, bool) {
        let (bytes, sum) = record.split_at(ENTRY_BYTES);
        (
            Entry::from_bytes(bytes),
            checksum(bytes).to_le_bytes() == *sum,
        )
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
