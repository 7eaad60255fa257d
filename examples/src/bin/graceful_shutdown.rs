//! A server that ends well: what it has begun it finishes, if that does not take too long.
//!
//! ```console
//! $ cargo run --release -p examples --bin graceful_shutdown -- --port 7400 --grace 5s
//! listening on 127.0.0.1:7400
//! $ printf '20ms\nsoon\n' | nc -N 127.0.0.1 7400
//! done after 20ms
//! a job is a duration, for instance 3s: ..
//! ^C
//! jobs: 1 finished, 0 cut off
//! ```
//!
//! A line is a job: how long it takes. Press Ctrl-C while a job is under way. Each executor then
//!
//! 1. stops accepting, as `stop` is cancelled, and connections read no further jobs;
//! 2. closes its gate, that is, waits for the connections, each of which finishes its job;
//! 3. and if they are not done within `--grace`, drops them.
//!
//! A second Ctrl-C ends the process at once.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::rc::Rc;

use clap::Parser;
use examples::serving::{Serving, Shard};
use futures_lite::future::or;
use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncWriteExt};
use glommio::net::TcpStream;
use glommio::sync::{CancellationToken, Gate};
use glommio::timer::{sleep, timeout};

/// Does jobs, and finishes them before it ends.
#[derive(Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Options { serving } = Options::parse();
    let ends = serving.run("", move |shard| serve(shard, serving))?;
    let (begun, finished) = ends
        .iter()
        .fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    println!("jobs: {finished} finished, {} cut off", begun - finished);
    Ok(())
}

#[derive(Default)]
struct Jobs {
    begun: Cell<u64>,
    finished: Cell<u64>,
}

/// How many jobs were begun and finished.
async fn serve(shard: Shard, serving: Serving) -> (u64, u64) {
    let (stop, gate, jobs) = (shard.stop.clone(), Gate::new(), Rc::new(Jobs::default()));
    // Clients that connect when this has ended are refused.
    shard
        .serve_each(|stream| {
            let pass = gate.enter().expect("the gate is closed later");
            let (stop, jobs) = (stop.clone(), jobs.clone());
            async move {
                if let Err(error) = work(stream, &stop, &jobs).await {
                    eprintln!("a connection has failed: {error}");
                }
                drop(pass);
            }
        })
        .await;
    if timeout(*serving.grace, gate.close()).await.is_err() {
        eprintln!("no more patience");
    }
    (jobs.begun.get(), jobs.finished.get())
}

/// Does one job after the other, until the client leaves or the server ends: between two jobs and
/// not within one.
async fn work(stream: TcpStream, stop: &CancellationToken, jobs: &Jobs) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        let over = async {
            stop.cancelled().await;
            Ok(0)
        };
        if or(over, stream.read_line(&mut line)).await? == 0 {
            return stream.close().await;
        }
        let answer = match line.trim().parse::<humantime::Duration>() {
            Ok(duration) => {
                jobs.begun.set(jobs.begun.get() + 1);
                sleep(*duration).await;
                jobs.finished.set(jobs.finished.get() + 1);
                format!("done after {duration}\n")
            }
            Err(error) => format!("a job is a duration, for instance 3s: {error}\n"),
        };
        stream.get_mut().write_all(answer.as_bytes()).await?;
    }
}
