//! A message queue over TCP: topics, groups of consumers, acks with deadlines, dead letters.
//!
//! ```console
//! $ cargo run --release -p examples --bin broker -- --port 7100 --spool /tmp/spool
//! $ cargo run --release -p examples --bin broker_load -- 127.0.0.1:7100 --in-flight 100000
//! ```
//!
//! [`examples::broker::protocol`] says what clients send and get. The broker delivers a message to one consumer of
//! each group, and holds it in flight until the ack comes. Without an ack in time the message is
//! delivered again, and after `--attempts` deliveries it goes to the topic `NAME.dead`, which is
//! read as any other. Each message in flight has a timer, so a hundred thousand of them are
//! nothing special; `queues.rs` has them.
//!
//! Messages live in memory. A partition is one executor with a port of its own, and shares nothing
//! with the others: clients choose one by the hash of a topic, say.
//!
//! # Ending
//!
//! Ctrl-C ends the broker in four steps: it accepts no more connections and refuses to publish;
//! delivers nothing more and waits for the acks of what is in flight, until their deadlines; writes
//! what is left into the spool, which the next start reads; and closes the connections, when all
//! replies have been sent. So a message that was confirmed has been acknowledged by each group, or
//! is in the spool.

#![forbid(unsafe_code)]

mod connection;
mod queues;
mod spool;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures_lite::future::or;
use glommio::net::TcpListener;
use glommio::sync::{CancellationToken, ForeignCancellation, Gate};
use glommio::timer::{interval_at, sleep};
use glommio::{LocalExecutorBuilder, Placement, TaskPanic, spawn_local};
use queues::{Broker, Counts, Rules};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Brokers messages between TCP clients.
#[derive(Clone, Debug, Parser)]
#[command(name = "broker")]
struct Options {
    /// Port of the first partition; the others take the ports after it. 0 takes free ones.
    #[arg(long, default_value_t = 7100)]
    port: u16,

    /// Executors, each with its own thread, port and topics.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    partitions: u16,

    /// CPU of the first partition; the others take the CPUs after it.
    #[arg(long)]
    cpu: Option<usize>,

    /// Time that a consumer has to acknowledge a message.
    #[arg(long, default_value = "30s")]
    ack_deadline: humantime::Duration,

    /// Deliveries without an ack after which a message becomes a dead letter.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    attempts: u16,

    /// Messages that may wait for a consumer, in each partition; more are refused.
    #[arg(long, default_value_t = 1_000_000)]
    waiting_max: usize,

    /// How often to print a line of metrics for each partition.
    #[arg(long, value_parser = not_zero)]
    metrics: Option<Duration>,

    /// File for messages that are left at the end, read at the start; each partition appends its
    /// number.
    #[arg(long)]
    spool: Option<PathBuf>,
}

fn not_zero(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("more than no time is needed".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let shutdown = CancellationToken::new();
    let mut executors = Vec::new();
    for partition in 0..options.partitions {
        let cpu = options.cpu.map(|first| first + usize::from(partition));
        let (options, ending) = (options.clone(), shutdown.foreign_child());
        let (report, listening) = mpsc::channel();
        let executor = LocalExecutorBuilder::new(cpu.map_or(Placement::Unbound, Placement::Fixed))
            .name("broker")
            .on_task_panic(TaskPanic::Isolate)
            .spawn(move || run(options, partition, ending, report))?;
        let Ok(address) = listening.recv() else {
            // It ended before it could listen, and its result says why.
            executor.join()??;
            return Ok(());
        };
        println!("listening on {address}");
        executors.push(executor);
    }
    signals.forever().next();
    shutdown.cancel();
    let mut total = Counts::default();
    for executor in executors {
        total += executor.join()??;
    }
    println!("{total}");
    match total.waiting {
        left if left > 0 && options.spool.is_none() => {
            Err(format!("{left} messages are lost, as there is no --spool").into())
        }
        _ => Ok(()),
    }
}

/// The life of one partition.
async fn run(
    options: Options,
    partition: u16,
    ending: ForeignCancellation,
    report: mpsc::Sender<SocketAddr>,
) -> io::Result<Counts> {
    let broker = Rc::new(Broker::new(Rules {
        ack_deadline: *options.ack_deadline,
        attempts: options.attempts,
        waiting_max: options.waiting_max,
    }));
    let spool = options.spool.map(|mut path| {
        path.as_mut_os_string().push(format!(".{partition}"));
        path
    });
    if let Some(spool) = &spool {
        (spool::load(&broker, spool).await).map_err(|error| named(spool, &error))?;
    }
    let port = match options.port {
        0 => 0,
        first => first.checked_add(partition).ok_or_else(|| {
            io::Error::other("the ports of the partitions end after 65535: choose a lower --port")
        })?,
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    report
        .send(listener.local_addr()?)
        .map_err(io::Error::other)?;

    // Both end with this function: a task whose handle is dropped is cancelled.
    let _deadlines = spawn_local({
        let broker = Rc::clone(&broker);
        async move { broker.watch_deadlines().await }
    });
    let _metrics = options.metrics.map(|period| {
        let broker = Rc::clone(&broker);
        spawn_local(async move {
            let mut ticks = interval_at(Instant::now() + period, period);
            loop {
                ticks.tick().await;
                println!("metrics of partition {partition}: {}", broker.counts());
            }
        })
    });

    let (clients, closing) = (Gate::new(), CancellationToken::new());
    let ending = ending.attach();
    or(
        ending.cancelled(),
        accept(&listener, &broker, &clients, &closing),
    )
    .await;
    drop(listener);
    broker.end().await;
    if let Some(spool) = &spool {
        (spool::save(&broker, spool).await).map_err(|error| named(spool, &error))?;
    }
    closing.cancel();
    clients.close().await?;
    Ok(broker.counts())
}

/// An error with the file that it is about.
fn named(file: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", file.display()))
}

/// Accepts clients for ever, each with a task of its own.
async fn accept(
    listener: &TcpListener,
    broker: &Rc<Broker>,
    clients: &Gate,
    closing: &CancellationToken,
) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                let (broker, closing) = (Rc::clone(broker), closing.clone());
                let service = async move {
                    // A client that leaves or sends nonsense ends its own connection and nothing
                    // else.
                    let _ = connection::serve(stream, &broker, &closing).await;
                };
                let spawned = clients.spawn(service);
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
