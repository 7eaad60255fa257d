//! A server that ends well: what it has begun it finishes, if that does not take too long.
//!
//! ```console
//! $ cargo run --release -p examples --bin graceful_shutdown -- --port 7400 --patience 5s
//! $ nc 127.0.0.1 7400                             # in another terminal
//! 3s
//! done after 3s
//! ```
//!
//! A line is a job: how long it takes. Press Ctrl-C in the first terminal while a job is under way.
//! The server then
//!
//! 1. stops accepting, as `ending` is cancelled, and connections read no further jobs;
//! 2. closes the gate, that is, waits for the connections, each of which finishes its job;
//! 3. and if they are not done within `--patience`, drops them.
//!
//! A second Ctrl-C ends the process at once.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, process, thread};

use clap::Parser;
use futures_lite::future::or;
use futures_lite::io::BufReader;
use futures_lite::{AsyncBufReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::sync::{CancellationToken, ForeignCancellation, Gate};
use glommio::timer::{sleep, timeout};
use glommio::{LocalExecutorBuilder, Placement, TaskPanic};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Does jobs, and finishes them before it ends.
#[derive(Debug, Parser)]
#[command(name = "graceful_shutdown")]
struct Options {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7400)]
    port: u16,

    /// How long to wait for jobs at the end.
    #[arg(long, default_value = "5s")]
    patience: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let shutdown = CancellationToken::new();
    let ending = shutdown.foreign_child();
    let (report, listening) = mpsc::channel();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("server")
        .on_task_panic(TaskPanic::Isolate)
        .spawn(move || run(options, ending, report))?;
    if let Ok(address) = listening.recv() {
        println!("listening on {address}");
        signals.forever().next();
        shutdown.cancel();
        thread::spawn(move || {
            signals.forever().next();
            process::exit(1);
        });
    }
    // If it could not listen, its result says why. The tasks that are left at its end are dropped,
    // and close their connections.
    Ok(executor.join()??)
}

#[derive(Default)]
struct Jobs {
    begun: Cell<u64>,
    finished: Cell<u64>,
}

async fn run(
    options: Options,
    ending: ForeignCancellation,
    report: mpsc::Sender<SocketAddr>,
) -> io::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    report
        .send(listener.local_addr()?)
        .map_err(io::Error::other)?;
    let (ending, gate, jobs) = (ending.attach(), Gate::new(), Rc::new(Jobs::default()));
    or(ending.cancelled(), accept(&listener, &gate, &ending, &jobs)).await;
    // Clients that connect from here on are refused.
    drop(listener);
    println!("ending");
    let is_done = timeout(*options.patience, gate.close()).await.is_ok();
    println!(
        "jobs: {} finished, {} cut off{}",
        jobs.finished.get(),
        jobs.begun.get() - jobs.finished.get(),
        if is_done { "" } else { ": no more patience" }
    );
    Ok(())
}

async fn accept(listener: &TcpListener, gate: &Gate, ending: &CancellationToken, jobs: &Rc<Jobs>) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                let (ending, jobs) = (ending.clone(), Rc::clone(jobs));
                let connection = async move {
                    if let Err(error) = serve(stream, &ending, &jobs).await {
                        eprintln!("a connection has failed: {error}");
                    }
                };
                let spawned = gate.spawn(connection);
                spawned.expect("the gate is closed later").detach();
            }
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Does one job after the other, until the client leaves or `ending` is cancelled: between two jobs
/// and not within one.
async fn serve(stream: TcpStream, ending: &CancellationToken, jobs: &Jobs) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        let over = async {
            ending.cancelled().await;
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
