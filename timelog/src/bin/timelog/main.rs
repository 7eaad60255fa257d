//! The command `timelog`.

#![forbid(unsafe_code)]

mod log;

use std::io;
use std::process::ExitCode;

use clap::Parser;

/// A log of time-stamped records.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// No progress on stderr.
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: log::Command,
}

/// The exit code for a log that is damaged.
const DAMAGE: u8 = 3;

/// The exit code for what is wrong around the program, not with its input.
const ENVIRONMENT: u8 = 4;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match log::run(&arguments.command, arguments.quiet) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DAMAGE),
        // The reader has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("timelog: {error}");
            ExitCode::from(ENVIRONMENT)
        }
    }
}
