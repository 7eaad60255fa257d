//! How the figures of a case come to be.

use std::process::Command;

use super::peers::Binary;
use crate::process;

/// A way to measure cases.
pub trait Method {
    /// Whether `binary` has what it takes.
    fn can(&self, binary: &Binary, case: &str) -> bool;

    /// Measures one case: a line `{"row": "tcp-rtt", "value": 33.1}` for each figure.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn measure(&self, binary: &Binary, case: &str) -> Result<String, String>;

    /// What should be said above the table.
    fn remark(&self) -> Option<String> {
        None
    }
}

/// The process that runs the case holds the clock, too.
#[derive(Debug)]
pub struct Alone;

impl Method for Alone {
    fn can(&self, binary: &Binary, case: &str) -> bool {
        binary.has(case)
    }

    fn measure(&self, binary: &Binary, case: &str) -> Result<String, String> {
        process::run(Command::new(&binary.path).arg(case), None)
    }
}
