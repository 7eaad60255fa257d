//! The binary form.

use std::io::{self, Read, Write};
use std::ops::RangeBounds;

use super::{LoadError, LoadErrorKind, Position};
use crate::{MemLog, Record, Snapshot, Ts};

const MAGIC: &[u8; 8] = b"TIMELOG\0";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;
/// Bounds the memory of both directions.
const BLOCK_ROWS: usize = 1 << 16;

impl<V: Record> Snapshot<V> {
    /// Writes the rows of a range in the [binary form](crate::dump), and gives their number.
    /// Writes block by block, so `out` needs no buffer of its own.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn dump(&self, range: impl RangeBounds<Ts>, mut out: impl Write) -> io::Result<u64> {
        if V::IS_RAW {
            let message = "values of no known type have no width of their own";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut rows = self.range(range);
        let count = rows.remaining();
        let mut part = Vec::new();
        part.extend_from_slice(MAGIC);
        part.extend_from_slice(&VERSION.to_le_bytes());
        part.extend_from_slice(&(V::BYTES as u32).to_le_bytes());
        part.extend_from_slice(&count.to_le_bytes());
        write(&mut part, &mut out)?;
        let mut left = count;
        while left > 0 {
            let block = left.min(BLOCK_ROWS as u64) as usize;
            part.extend_from_slice(&(block as u32).to_le_bytes());
            let mut value_at = part.len() + block * size_of::<Ts>();
            part.resize(value_at + block * V::BYTES, 0);
            for (row, (ts, value)) in rows.by_ref().take(block).enumerate() {
                part[4 + row * size_of::<Ts>()..][..size_of::<Ts>()]
                    .copy_from_slice(&ts.to_le_bytes());
                value.encode(&mut part[value_at..][..V::BYTES]);
                value_at += V::BYTES;
            }
            write(&mut part, &mut out)?;
            left -= block as u64;
        }
        out.flush()?;
        Ok(count)
    }
}

/// Writes a part with its checksum, and empties it.
fn write(part: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    let checksum = crc32fast::hash(part);
    part.extend_from_slice(&checksum.to_le_bytes());
    out.write_all(part)?;
    part.clear();
    Ok(())
}

impl<V: Record> MemLog<V> {
    /// Appends the rows of a file in the [binary form](crate::dump), and gives their number. Each
    /// block is verified before its rows are appended, as a batch.
    ///
    /// # Errors
    /// [`LoadError`]; the rows of earlier blocks are in.
    pub fn load(&mut self, input: impl Read) -> Result<u64, LoadError> {
        let mut input = Input {
            input,
            offset: 0,
            rows: 0,
            part: Vec::new(),
        };
        let wanted = input.header(V::BYTES)?;
        while input.rows < wanted {
            let most = (wanted - input.rows).min(BLOCK_ROWS as u64);
            let batch = input.block::<V>(most)?;
            let count = batch.len() as u64;
            if let Err(refused) = self.extend(batch) {
                return Err(input.error(LoadErrorKind::Refused(refused.kind)));
            }
            input.rows += count;
            input.offset += input.part.len() as u64;
            input.part.clear();
        }
        Ok(wanted)
    }
}

struct Input<R> {
    input: R,
    /// Where the current part begins.
    offset: u64,
    /// Rows that were appended.
    rows: u64,
    /// Read so far, with its checksum at the end.
    part: Vec<u8>,
}

impl<R: Read> Input<R> {
    fn error(&self, kind: LoadErrorKind) -> LoadError {
        LoadError {
            rows: self.rows,
            at: Position::Offset(self.offset),
            kind,
        }
    }

    fn format(
        &self,
        field: &'static str,
        found: impl ToString,
        wanted: impl ToString,
    ) -> LoadError {
        LoadError::format(
            self.rows,
            Position::Offset(self.offset),
            field,
            found,
            wanted,
        )
    }

    /// Reads so many more bytes of the part.
    fn read(&mut self, bytes: usize) -> Result<(), LoadError> {
        let start = self.part.len();
        self.part.resize(start + bytes, 0);
        let read = self.input.read_exact(&mut self.part[start..]);
        read.map_err(|error| self.error(LoadErrorKind::Read(error)))
    }

    /// Reads so many more bytes and the checksum of the part.
    fn finish(&mut self, bytes: usize) -> Result<(), LoadError> {
        self.read(bytes + CHECKSUM_BYTES)?;
        let end = self.part.len() - CHECKSUM_BYTES;
        let computed = crc32fast::hash(&self.part[..end]);
        let stored = u32::decode(&self.part[end..]);
        if computed == stored {
            Ok(())
        } else {
            Err(self.error(LoadErrorKind::Checksum { computed, stored }))
        }
    }

    /// The number of rows.
    fn header(&mut self, value_bytes: usize) -> Result<u64, LoadError> {
        self.read(MAGIC.len())?;
        if self.part != MAGIC {
            let found = format!("{:?}", String::from_utf8_lossy(&self.part));
            let wanted = format!("{:?}", String::from_utf8_lossy(MAGIC));
            return Err(self.format("the magic", found, wanted));
        }
        self.finish(HEADER_BYTES - MAGIC.len())?;
        let number = |at: usize| u32::decode(&self.part[at..at + 4]);
        let (version, width) = (number(8), number(12));
        if version != VERSION {
            return Err(self.format("the version", version, VERSION));
        }
        if width as usize != value_bytes {
            return Err(self.format("the bytes of a value", width, value_bytes));
        }
        let rows = u64::decode(&self.part[16..24]);
        self.offset += self.part.len() as u64;
        self.part.clear();
        Ok(rows)
    }

    fn block<V: Record>(&mut self, most: u64) -> Result<Vec<(Ts, V)>, LoadError> {
        self.read(4)?;
        let rows = u32::decode(&self.part[..4]) as usize;
        if !(1..=most).contains(&(rows as u64)) {
            return Err(self.format("the rows of a block", rows, format!("1 to {most}")));
        }
        self.finish(rows * (8 + V::BYTES))?;
        let (timestamps, values) = self.part[4..].split_at(rows * 8);
        let timestamps = timestamps.chunks_exact(size_of::<Ts>()).enumerate();
        let batch = timestamps.map(|(row, ts)| {
            let value = &values[row * V::BYTES..(row + 1) * V::BYTES];
            (Ts::decode(ts), V::decode(value))
        });
        Ok(batch.collect())
    }
}
