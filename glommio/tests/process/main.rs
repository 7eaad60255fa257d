//! Child processes: real ones, such as every system has.

#[path = "../common/mod.rs"]
mod common;

mod children;
mod dropped;
mod faults;
mod pipes;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use glommio::process::{Child, Command};
use glommio::timer::sleep;

/// `sh -c script`.
fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// A child that ends when its input does.
fn cat() -> Child {
    let started = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    started.expect("every system has it")
}

/// Whether there is a process of this number, also if it is a zombie.
fn exists(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

/// Returns when the process is reaped; the watchdog bounds the wait.
async fn gone(id: u32) {
    while exists(id) {
        sleep(Duration::from_millis(1)).await;
    }
}
