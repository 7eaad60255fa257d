//! The glommio of this repository.

use std::future::Future;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_lite::StreamExt;
use glommio as rt;
use workloads::cases::{notices, slack};
use workloads::files::Listing;
use workloads::{Case, Slack, case};

#[path = "../../glommio_all.rs"]
mod all;
#[path = "../../glommio_notices.rs"]
mod notice_adapter;

use all::adapter::Glommio;

fn main() {
    workloads::main(&[
        &all::menu(),
        &notices::<Glommio>(),
        &slack::<Glommio>(),
        UNREGISTERED,
    ]);
}

const UNREGISTERED: &[Case] = &[
    case("unregistered-1", || without_registration("direct-1")),
    case("unregistered-32", || without_registration("direct-32")),
];

/// Runs `case` in a process whose executors do not register their I/O memory.
fn without_registration(case: &str) {
    let program = std::env::current_exe().expect("procfs is mounted");
    let output = Command::new(program)
        .arg(case)
        .env("GLOMMIO_RING_WITHOUT", "registered")
        .stderr(Stdio::inherit())
        .output()
        .expect("it is a program");
    assert!(output.status.success(), "{case}: {}", output.status);
    let printed = String::from_utf8(output.stdout).expect("rows are text");
    print!("{}", printed.replace("\"direct-", "\"unregistered-"));
}

impl Slack for Glommio {
    fn run_with_slack<F: Future + 'static>(slack: Duration, future: F) -> F::Output
    where
        F::Output: 'static,
    {
        rt::LocalExecutorBuilder::new(rt::Placement::Unbound)
            .timer_slack(slack)
            .make()
            .expect("the kernel has io_uring and lets us use it")
            .run(future)
    }
}

impl Listing for Glommio {
    async fn list(path: PathBuf) -> usize {
        let directory = rt::io::Directory::open(path).await;
        let directory = directory.expect("the workload has made it");
        let mut names = directory.read_dir().expect("it is there");
        let mut count = 0;
        while let Some(name) = names.next().await {
            name.expect("it can be read");
            count += 1;
        }
        drop(names);
        directory.close().await.expect("it is open");
        count
    }
}
