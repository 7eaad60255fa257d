//! How a bench ends.

use std::fmt::Display;
use std::process::ExitCode;

/// The exit status for what came out; says what went wrong.
pub fn exit_code<E: Display>(outcome: Result<(), E>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
