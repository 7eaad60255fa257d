//! Errors of configuration and writing, and what `check` reports.

use std::error::Error;
use std::fmt;
use std::ops::RangeInclusive;

use crate::Ts;

/// A field of [`Config`](crate::Config) that is out of range or contradicts another.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog};
///
/// let error = MemLog::<u64>::new(Config::default().page_bytes(1)).unwrap_err();
/// assert_eq!(error.field, "page_bytes");
/// assert_eq!(error.to_string(), "page_bytes is 1, wanted 64 bytes to 1 MiB");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the field.
    pub field: &'static str,
    /// What it was set to.
    pub found: String,
    /// What it may be set to.
    pub wanted: &'static str,
}

impl ConfigError {
    /// `Ok` if `holds`, else what is wrong.
    pub(crate) fn unless(
        holds: bool,
        field: &'static str,
        found: impl fmt::Debug,
        wanted: &'static str,
    ) -> Result<(), Self> {
        if holds {
            return Ok(());
        }
        let found = format!("{found:?}");
        Err(Self {
            field,
            found,
            wanted,
        })
    }

    /// `Ok` if a value is in a range, else what is wrong.
    pub(crate) fn within<T: PartialOrd + fmt::Debug>(
        field: &'static str,
        value: T,
        range: RangeInclusive<T>,
        wanted: &'static str,
    ) -> Result<(), Self> {
        Self::unless(range.contains(&value), field, value, wanted)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, wanted {}",
            self.field, self.found, self.wanted
        )
    }
}

impl Error for ConfigError {}

/// Why a write was refused. A refused write changed nothing and took no [`Seq`](crate::Seq).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteErrorKind {
    /// A row lies below the floor.
    BelowFloor {
        /// Its place in the batch, from 0.
        index: usize,
        /// Its timestamp.
        ts: Ts,
        /// The floor: the least timestamp that is accepted.
        floor: Ts,
    },
    /// A delete of no timestamp.
    EmptyRange,
    /// The columns of a batch differ in length.
    LengthMismatch {
        /// The number of timestamps.
        timestamps: usize,
        /// The number of values.
        values: usize,
    },
    /// The write would pass `memory_limit_bytes`.
    Full {
        /// What unflushed rows would take with it, in bytes.
        needed_bytes: usize,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
}

impl fmt::Display for WriteErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowFloor { index, ts, floor } => {
                write!(f, "row {index} has timestamp {ts}, below the floor {floor}")
            }
            Self::EmptyRange => f.write_str("the range to delete is empty"),
            Self::LengthMismatch { timestamps, values } => {
                write!(f, "{timestamps} timestamps for {values} values")
            }
            Self::Full {
                needed_bytes,
                limit_bytes,
            } => {
                write!(
                    f,
                    "unflushed rows would take {needed_bytes} bytes, the limit is {limit_bytes}"
                )
            }
        }
    }
}

/// A refused write, with the values that were not inserted.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog, WriteErrorKind};
///
/// let mut log = MemLog::new(Config::default().floor(100))?;
/// let refused = log.append(99, "late").unwrap_err();
/// assert_eq!(refused.kind, WriteErrorKind::BelowFloor { index: 0, ts: 99, floor: 100 });
/// assert_eq!(refused.rejected, "late");
/// # Ok::<(), timelog::ConfigError>(())
/// ```
pub struct WriteError<T> {
    /// Why the write was refused.
    pub kind: WriteErrorKind,
    /// What was to be written.
    pub rejected: T,
}

impl<T> fmt::Debug for WriteError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteError")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Display for WriteError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl<T> Error for WriteError<T> {}

/// The first broken invariant that [`MemLog::check`](crate::MemLog::check) met: a defect of this
/// crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which invariant, and where.
    pub what: String,
}

impl Broken {
    /// `Ok` if `holds`, else what is broken.
    pub(crate) fn unless(holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
        if holds {
            Ok(())
        } else {
            Err(Broken { what: what() })
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken invariant: {}", self.what)
    }
}

impl Error for Broken {}
