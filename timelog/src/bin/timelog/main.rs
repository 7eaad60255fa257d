//! The command `timelog`.

#![forbid(unsafe_code)]

mod bench;
mod dataset;
mod generate;
mod log;
mod parse;

use std::io;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A log of time-stamped records.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// No progress on stderr.
    #[arg(long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes orders of a made-up exchange as CSV: the same bytes for the same arguments.
    Gen(generate::Options),
    /// Measures the cases of the published Timelog, floors and std's collections; writes tables, a
    /// page with plots and JSON.
    Bench(bench::Options),
    #[command(flatten)]
    Log(log::Command),
}

/// The exit code for a log that is damaged.
const DAMAGE: u8 = 3;

/// The exit code for what is wrong around the program, not with its input.
const ENVIRONMENT: u8 = 4;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.command {
        Command::Gen(options) => generate::run(options, arguments.quiet),
        Command::Bench(options) => bench::run(options, arguments.quiet),
        Command::Log(command) => match log::run(command, arguments.quiet) {
            Ok(false) => return ExitCode::from(DAMAGE),
            done => done.map(|_| ()),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("timelog: {error}");
            ExitCode::from(ENVIRONMENT)
        }
    }
}
