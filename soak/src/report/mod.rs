//! What people see of a run: its progress, and `--report`, one HTML page about it or about two side by side.
//!
//! The page is read on phones and on desks, in light and in dark, by people who were not there: what it says, it says in
//! words as well as in colours, and every plot has a text in its place. It has no scripts, fonts or addresses.

mod page;
mod plots;
pub(crate) mod progress;

#[cfg(test)]
mod tests;

pub(crate) use self::page::{compared, page};
pub(crate) use self::plots::write_pictures;
