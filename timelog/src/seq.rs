//! The order of acceptance.

use std::fmt;

/// The place of an operation in the order of acceptance: every accepted row, delete and floor takes
/// one, from 1, without gaps.
///
/// # Examples
///
/// ```
/// use timelog::{Config, MemLog, Seq};
///
/// let mut log = MemLog::new(Config::default())?;
/// assert_eq!(log.append(7, "a")?.first, Seq(1));
/// assert_eq!(log.delete_at(7), Seq(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
