//! Rows to files and back.
//!
//! [`Snapshot::dump`](crate::Snapshot::dump) writes rows in a binary form with checksums, which
//! [`MemLog::load`](crate::MemLog::load) reads; `Snapshot::dump_csv` and `MemLog::load_csv` do so
//! with CSV, under the feature `csv`, and `dump_arrow` writes a stream of Arrow IPC for other programs,
//! under the feature `arrow`. Both forms hold visible rows in order, and no deletes or
//! sequence numbers.
//!
//! ```
//! use timelog::{Config, MemLog};
//!
//! let mut log = MemLog::new(Config::default())?;
//! log.extend([(2, 20u64), (1, 10)])?;
//! let mut file = Vec::new();
//! log.snapshot().dump(.., &mut file)?;
//!
//! let mut copy = MemLog::<u64>::new(Config::default())?;
//! assert_eq!(copy.load(&file[..])?, 2);
//! assert_eq!(copy.snapshot().first(), Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Binary form
//!
//! All numbers are little-endian; checksums are CRC-32 (IEEE) of what lies before them in the same
//! part.
//!
//! ```text
//!   header   magic "TIMELOG\0"  8 │ version 1  4 │ value bytes  4 │ rows  8 │ checksum  4
//!   block    rows  4 │ timestamps  8 each │ values  value bytes each │ checksum  4
//!   block    …
//! ```
//!
//! The number of rows in the header is that of all blocks; each has 1 to 65,536. What follows the
//! last block is not read.

#[cfg(feature = "arrow")]
mod arrow;
mod binary;
#[cfg(feature = "csv")]
mod csv;

use std::error::Error;
use std::{fmt, io};

#[cfg(feature = "arrow")]
pub use arrow::dump_arrow;

use crate::WriteErrorKind;

/// Why loading ended early. The rows before are in.
#[derive(Debug)]
pub struct LoadError {
    /// How many rows are in the log.
    pub rows: u64,
    /// Where in the input it ended.
    pub at: Position,
    /// What was wrong there.
    pub kind: LoadErrorKind,
}

/// A place in an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Bytes from its start.
    Offset(u64),
    /// A line, from 1.
    Line(u64),
}

/// What was wrong with an input.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadErrorKind {
    /// It could not be read, or ended in the midst of a part.
    Read(io::Error),
    /// It is none of these files, or of another version or width.
    Format {
        /// Which field.
        field: &'static str,
        /// What is there.
        found: String,
        /// What was expected.
        wanted: String,
    },
    /// A checksum does not match: it was damaged.
    Checksum {
        /// That of the bytes.
        computed: u32,
        /// That in the file.
        stored: u32,
    },
    /// The log refused rows; those of the same block or batch are not in.
    Refused(WriteErrorKind),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(offset) => write!(f, "offset {offset}"),
            Self::Line(line) => write!(f, "line {line}"),
        }
    }
}

impl fmt::Display for LoadErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Format {
                field,
                found,
                wanted,
            } => write!(f, "{field} is {found}, expected {wanted}"),
            Self::Checksum { computed, stored } => {
                write!(f, "checksum is {computed:08x}, the file says {stored:08x}")
            }
            Self::Refused(kind) => kind.fmt(f),
        }
    }
}

impl LoadError {
    /// What was wrong with a field.
    fn format(
        rows: u64,
        at: Position,
        field: &'static str,
        found: impl ToString,
        wanted: impl ToString,
    ) -> Self {
        let kind = LoadErrorKind::Format {
            field,
            found: found.to_string(),
            wanted: wanted.to_string(),
        };
        Self { rows, at, kind }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, at, kind } = self;
        write!(f, "{at}: {kind}; {rows} rows are loaded")
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            LoadErrorKind::Read(error) => Some(error),
            _ => None,
        }
    }
}
