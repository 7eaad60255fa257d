//! The log against a sorted map and a list of deletes.

mod driver;
mod keyed;
mod oracle;
mod panics;
