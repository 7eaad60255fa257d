//! Receiving signals that are really sent.
//!
//! A signal of the process ends it if one thread does not block it, and the threads of the test
//! harness do not. So this program is its own harness: each case is a process of its own, whose
//! `main` thread runs it.

mod cases;

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

const CASE: &str = "GLOMMIO_SIGNAL_CASE";

/// What has not ended by then hangs.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        let (_, case) = cases::ALL
            .iter()
            .find(|(it, _)| *it == name)
            .expect("the parent names a case");
        case();
        return ExitCode::SUCCESS;
    }
    // As the harness of Rust understands them; other options are for nothing here.
    let arguments: Vec<_> = env::args().skip(1).collect();
    let has = |option: &str| arguments.iter().any(|it| it == option);
    let filter = arguments.iter().find(|it| !it.starts_with('-'));
    let chosen = cases::ALL.iter().map(|(name, _)| *name).filter(|name| {
        filter.is_none_or(|filter| {
            if has("--exact") {
                name == filter
            } else {
                name.contains(filter.as_str())
            }
        })
    });
    if has("--list") {
        chosen.for_each(|name| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let chosen: Vec<_> = chosen.collect();
    println!("\nrunning {} tests", chosen.len());
    let failed = chosen.iter().filter(|name| !succeeds(name)).count();
    let passed = chosen.len() - failed;
    println!("\ntest result: {passed} passed; {failed} failed\n");
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Runs a case in a process of its own.
fn succeeds(name: &str) -> bool {
    let mut child = Command::new(env::current_exe().expect("the program knows its path"))
        .env(CASE, name)
        .stdin(Stdio::null())
        .spawn()
        .expect("a process can be started");
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            child.kill().expect("it runs");
            break child.wait().expect("it is our child");
        }
        thread::sleep(Duration::from_millis(1));
    };
    let how = if status.success() { "ok" } else { "FAILED" };
    println!("test {name} ... {how} ({status})");
    status.success()
}
