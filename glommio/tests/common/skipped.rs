//! Tests that the machine does not let run, or not in whole. Each is a line of the output, also
//! when all tests pass, and also that of a child process.

use std::fmt::Display;
use std::io::Write;

use super::CHILD;

const MARK: &str = "skipped: ";

/// Says that the current test is left out, or a part of it.
pub fn skipped(reason: impl Display) {
    let test = std::env::var(CHILD).ok();
    let thread = std::thread::current();
    let test = test.as_deref().or(thread.name()).unwrap_or("a test");
    tell(format_args!("{MARK}{test}: {reason}"));
}

/// Says again what a child said of tests that it left out.
pub(super) fn relay(stderr: &str) {
    for line in stderr.lines().filter(|line| line.starts_with(MARK)) {
        tell(line);
    }
}

/// Not `eprintln`, which the test harness keeps to itself unless the test fails. One write, so that
/// lines of tests that run side by side are not mixed.
fn tell(line: impl Display) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}
