//! The bytes of files, version 3: see `timelog/docs/files.md` for pictures.
//!
//! All integers are little-endian. A checksum is a CRC-32 (of IEEE 802.3), kept outside of what it
//! protects. Files consist of units of 4 KiB, the most that a device may demand of direct I/O.

use super::error::Error;
use crate::Ts;
use std::path::Path;

/// Blocks and pages begin at multiples of this.
pub(super) const UNIT: usize = 4096;
pub(super) const VERSION: u32 = 3;

pub(super) const WAL_MAGIC: u64 = u64::from_le_bytes(*b"TLOG-WAL");
pub(super) const CHECKPOINT_MAGIC: u64 = u64::from_le_bytes(*b"TLOG-CKP");

/// The most that a page of a checkpoint takes; the next one follows at the next unit.
pub(super) const PAGE_BYTES: usize = 1 << 20;
pub(super) const PAGE_HEAD: usize = 32;
pub(super) const ROW_PAGE_BYTES: usize = PAGE_BYTES - PAGE_HEAD;

/// The part of a block of the write-ahead log before its operations.
pub(super) const BLOCK_HEAD: usize = 44;
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"TBLK");

pub(super) const MANIFEST: &str = "MANIFEST";

/// Whether a file of this name may be one of a log.
pub(super) fn is_log_file(name: &str) -> bool {
    let is_number = |it: &str| it.len() == 16 && it.bytes().all(|it| it.is_ascii_hexdigit());
    match name.split_once('-') {
        Some(("wal", number)) => is_number(number),
        Some(("checkpoint", numbers)) => {
            let numbers = numbers.split_once('-');
            numbers.is_some_and(|(from, to)| is_number(from) && is_number(to))
        }
        _ => false,
    }
}

/// Whether something of this name is a log, or a part of one.
pub(super) fn is_of_log(name: &str) -> bool {
    is_log_file(name) || name == MANIFEST || name.starts_with("shard-")
}

pub(super) fn round_up(bytes: usize) -> usize {
    bytes.next_multiple_of(UNIT)
}

/// In one load: byte by byte, decoding takes longer than the device.
#[inline]
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *bytes[at..]
        .first_chunk()
        .expect("it was checked to be there")
}

#[inline]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

#[inline]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[inline]
pub(super) fn ts_at(bytes: &[u8], at: usize) -> Ts {
    Ts::from_le_bytes(array_at(bytes, at))
}

/// The first unit of a file: which log it belongs to, and numbers that are its own.
///
/// ```text
///    0         8         12  16         24
///   ┌─────────┬─────────┬───┬──────────┬──────────────┬─ zeros ─┬──────────┐
///   │ magic   │ version │ 0 │ identity │ numbers, u64 │         │ checksum │
///   └─────────┴─────────┴───┴──────────┴──────────────┴─────────┴──────────┘
///                                                         4092       4096
/// ```
pub(super) fn file_head(magic: u64, identity: u64, numbers: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(UNIT);
    for number in [magic, VERSION.into(), identity].iter().chain(numbers) {
        bytes.extend(number.to_le_bytes());
    }
    bytes.resize(UNIT - 4, 0);
    let checksum = crc32fast::hash(&bytes);
    bytes.extend(checksum.to_le_bytes());
    bytes
}

/// The numbers of a first unit that [`file_head`] has made, if it is whole; `None` if it is none.
/// An error if it is of another version or log.
pub(super) fn parse_file_head<const N: usize>(
    bytes: &[u8],
    magic: u64,
    identity: u64,
    path: &Path,
) -> Result<Option<[u64; N]>, Error> {
    let is_whole = bytes.len() >= UNIT
        && u64_at(bytes, 0) == magic
        && crc32fast::hash(&bytes[..UNIT - 4]) == u32_at(bytes, UNIT - 4);
    if !is_whole {
        return Ok(None);
    }
    let version = u32_at(bytes, 8);
    if version != VERSION {
        let path = path.to_owned();
        let what = format!("its format has version {version}, this program reads {VERSION}");
        return Err(Error::Format { path, what });
    }
    if u64_at(bytes, 16) != identity {
        return Err(Error::corrupt(path, 16, "it belongs to another log"));
    }
    Ok(Some(std::array::from_fn(|index| {
        u64_at(bytes, 24 + 8 * index)
    })))
}

/// The head of a block: a group of operations that is there as a whole or not at all.
///
/// ```text
///    0       4         8      16          24           28         32       36        40         44
///   ┌───────┬─────────┬──────┬───────────┬────────────┬──────────┬────────┬─────────┬──────────┬──────────┐
///   │ magic │ payload │ salt │ first     │ operations │ checksum │ block  │ durable │ checksum │ payload, │
///   │       │ bytes   │      │ operation │            │ payload  │ number │ blocks  │ head     │ zeros    │
///   └───────┴─────────┴──────┴───────────┴────────────┴──────────┴────────┴─────────┴──────────┴──────────┘
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockHead {
    pub payload_bytes: u32,
    /// Of the use of the file: a block of an earlier use has another one.
    pub salt: u64,
    pub first: u64,
    pub operations: u32,
    pub payload_checksum: u32,
    /// Counted from 0 in each use of a file.
    pub number: u32,
    /// The blocks of the file that were durable when this one was about to be written: those before
    /// this number.
    pub durable: u32,
}

impl BlockHead {
    /// Fills in the head of a block, which has the space of one, with size and checksum of what the
    /// block has, and pads it.
    pub fn seal(self, block: &mut Vec<u8>) {
        let payload = &block[BLOCK_HEAD..];
        let mut head = Vec::with_capacity(BLOCK_HEAD);
        head.extend(BLOCK_MAGIC.to_le_bytes());
        head.extend((payload.len() as u32).to_le_bytes());
        head.extend(self.salt.to_le_bytes());
        head.extend(self.first.to_le_bytes());
        head.extend(self.operations.to_le_bytes());
        head.extend(crc32fast::hash(payload).to_le_bytes());
        head.extend(self.number.to_le_bytes());
        head.extend(self.durable.to_le_bytes());
        head.extend(crc32fast::hash(&head).to_le_bytes());
        block[..BLOCK_HEAD].copy_from_slice(&head);
        block.resize(round_up(block.len()), 0);
    }

    /// The head at the beginning of `bytes`, if there is a whole one of this use of the file.
    pub fn parse(bytes: &[u8], salt: u64) -> Option<BlockHead> {
        let is_whole = bytes.len() >= BLOCK_HEAD
            && u32_at(bytes, 0) == BLOCK_MAGIC
            && u64_at(bytes, 8) == salt
            && u32_at(bytes, 40) == crc32fast::hash(&bytes[..40]);
        is_whole.then(|| BlockHead {
            payload_bytes: u32_at(bytes, 4),
            salt,
            first: u64_at(bytes, 16),
            operations: u32_at(bytes, 24),
            payload_checksum: u32_at(bytes, 28),
            number: u32_at(bytes, 32),
            durable: u32_at(bytes, 36),
        })
    }

    /// How much of the file the block takes.
    pub fn len(&self) -> usize {
        round_up(BLOCK_HEAD + self.payload_bytes as usize)
    }
}

const ROWS: u8 = 1;
const DELETE: u8 = 2;
const FLOOR: u8 = 3;
/// Of a row that follows: kind and number of rows.
pub(super) const ROWS_HEAD: usize = 5;

/// The head of so many rows.
pub(super) fn push_rows_head(payload: &mut Vec<u8>, rows: u32) {
    payload.push(ROWS);
    payload.extend(rows.to_le_bytes());
}

/// Raises the number of rows in a head that begins at `at`, if it stays a number.
pub(super) fn add_rows(payload: &mut [u8], at: usize, rows: u32) -> bool {
    let sum = u32_at(payload, at + 1).checked_add(rows);
    if let Some(sum) = sum {
        payload[at + 1..at + ROWS_HEAD].copy_from_slice(&sum.to_le_bytes());
    }
    sum.is_some()
}

/// A whole delete.
pub(super) fn delete(first: Ts, last: Ts) -> Vec<u8> {
    [&[DELETE][..], &first.to_le_bytes(), &last.to_le_bytes()].concat()
}

/// A whole floor.
pub(super) fn floor(ts: Ts) -> Vec<u8> {
    [&[FLOOR][..], &ts.to_le_bytes()].concat()
}

/// What stands in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation<'b> {
    /// Timestamp and value of each.
    Rows(&'b [u8]),
    /// From one timestamp to another, both inside.
    Delete(Ts, Ts),
    Floor(Ts),
}

/// Takes the next operation of a payload, with how many operations it stands for.
pub(super) fn next_operation<'b>(
    payload: &mut &'b [u8],
    row_bytes: usize,
) -> Result<(Operation<'b>, u64), &'static str> {
    let mut take = |bytes: usize| {
        let taken = payload.split_at_checked(bytes);
        let (taken, rest) = taken.ok_or("an operation goes beyond its block")?;
        *payload = rest;
        Ok(taken)
    };
    match take(1)?[0] {
        ROWS => {
            let rows = u32_at(take(4)?, 0) as usize;
            let bytes = rows.checked_mul(row_bytes).ok_or("a number of rows")?;
            Ok((Operation::Rows(take(bytes)?), rows as u64))
        }
        DELETE => {
            let bytes = take(16)?;
            let (first, last) = (ts_at(bytes, 0), ts_at(bytes, 8));
            if first > last {
                return Err("a delete of no timestamp");
            }
            Ok((Operation::Delete(first, last), 1))
        }
        FLOOR => Ok((Operation::Floor(ts_at(take(8)?, 0)), 1)),
        _ => Err("an operation of no known kind"),
    }
}
