//! Child processes: real ones, such as every system has.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod children;
mod dropped;
mod faults;
mod pipes;

use glommio::process::{Child, Command};

use crate::common::prelude::*;
use crate::common::seccomp::deny;
use crate::common::settle;

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

/// Runs `body` in a process of its own, and in one without pidfds.
fn in_children_with_and_without_pidfds(body: impl Fn()) {
    for pidfds in ["allowed", "missing"] {
        in_child_with(&[("PIDFDS", pidfds)], || {
            // The child has one of them.
            if std::env::var("PIDFDS").is_ok_and(|it| it == pidfds) {
                if pidfds == "missing" {
                    deny(libc::SYS_pidfd_open, libc::ENOSYS);
                }
                body();
            }
        });
    }
}
