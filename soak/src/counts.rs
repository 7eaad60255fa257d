//! Counts and sizes as people read them.

use indicatif::{HumanBytes, HumanCount};

/// `1234567` as `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    HumanCount(number).to_string()
}

/// `12.30 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    HumanBytes(bytes).to_string()
}
