//! Processes under measurement: started where they belong, ended when they hang.

use std::io;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::thread::bind_to;

/// No case takes a tenth of it; a runtime that hangs is named, and the others go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts `command`, on `cpu` alone if one is given.
///
/// # Errors
/// If it cannot be started, or may not run there.
pub fn start(command: &mut Command, cpu: Option<usize>) -> io::Result<Child> {
    command.env("RUST_BACKTRACE", "0");
    let Some(cpu) = cpu else {
        return command.spawn();
    };
    // A child begins with the CPUs of the thread that starts it.
    let this_thread = Pid::from_raw(0);
    let own_cpus = sched_getaffinity(this_thread)?;
    bind_to(cpu)?;
    let child = command.spawn();
    sched_setaffinity(this_thread, &own_cpus)?;
    child
}

/// Runs a process to its end and takes what it printed.
///
/// # Errors
/// In words, when it could not be started, failed, or had to be killed.
pub fn run(command: &mut Command, cpu: Option<usize>) -> Result<String, String> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = start(command, cpu).map_err(|error| error.to_string())?;
    // What it prints, a panic included, fits the pipes, which need not be read while it runs. It
    // hangs up by ending. Looking now and then instead would take a CPU from those who are
    // measured.
    let output = process.stdout.as_ref().expect("it is in a pipe");
    let has_ended = happens(output, PollFlags::empty(), PATIENCE);
    if !has_ended.map_err(|error| error.to_string())? {
        end(&mut process);
        return Err(format!("killed after {} s", PATIENCE.as_secs()));
    }
    let output = process
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(complaint(output.status, &output.stderr))
    }
}

/// Waits until `output` has one of `events` or hangs up, and says whether that came within
/// `patience`.
///
/// # Errors
/// If the kernel has no memory for it.
pub fn happens(output: &ChildStdout, events: PollFlags, patience: Duration) -> io::Result<bool> {
    let timeout = PollTimeout::try_from(patience).expect("a minute fits");
    Ok(poll(&mut [PollFd::new(output.as_fd(), events)], timeout)? > 0)
}

/// Kills `process` if it still runs, and buries it.
pub fn end(process: &mut Child) {
    // The kill fails only if it has ended, and the wait only if it was waited for.
    let _ = process.kill();
    let _ = process.wait();
}

/// What became of a process, with the beginning of what it said about it.
pub fn complaint(status: ExitStatus, errors: &[u8]) -> String {
    let errors = String::from_utf8_lossy(errors);
    let why: Vec<&str> = errors
        .lines()
        .filter(|line| !line.is_empty())
        .take(2)
        .collect();
    format!("{status}: {}", why.join(" "))
}
