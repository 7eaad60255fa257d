//! A server that is replaced by a newer process under load: no connection is refused, none is reset.
//!
//! ```console
//! $ cargo run --release -p examples --bin hot_restart -- --port 7401 --control /tmp/hot.sock
//! $ nc 127.0.0.1 7401                              # in another terminal: each line is answered
//! $ cargo run --release -p examples --bin hot_restart -- --control /tmp/hot.sock   # in a third one
//! ```
//!
//! The second server takes over from the first, which ends, and answers the lines of the client in
//! the second terminal, over the same connection. `--demo` replaces a server five times under load.
//!
//! The processes talk over a Unix socket (`handover.rs`):
//!
//! ```text
//!   running                                              successor
//!           ◀──────────────── connects ────────────────
//!           ─── both listening sockets ───────────────▶
//!           ◀──────────────── "ready" ─────────────────
//!           ──────────── "you are chosen" ─────────────▶ accepts
//!   accepts no more, finishes the requests under way
//!           ─── each connection, with what was read of it ──▶
//!           ◀────────────── "received" ────────────────
//!   ends    ─────────────── "yours" ──────────────────▶  serves them
//! ```
//!
//! Until then the running one can go on, and does: if the successor dies, or takes longer than `--patience`. Any
//! number may ask at a time; the first that is ready is chosen.

#![forbid(unsafe_code)]

mod demo;
mod handover;
mod server;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use glommio::{LocalExecutorBuilder, TaskPanic};

/// Answers lines, and hands over to its successor.
#[derive(Debug, Parser)]
#[command(name = "hot_restart")]
struct Options {
    /// Port to listen on, if there is no server to take over from; 0 takes a free one.
    #[arg(long, default_value_t = 7401)]
    port: u16,

    /// Unix socket on which a successor asks for the sockets.
    #[arg(long, required_unless_present = "demo")]
    control: Option<PathBuf>,

    /// How long a candidate may take until it is ready, and the successor until it has all connections.
    #[arg(long, default_value = "5s")]
    patience: humantime::Duration,

    /// How long a request takes.
    #[arg(long, default_value = "0s")]
    work: humantime::Duration,

    /// Replaces a server again and again while clients use it, and counts what they see.
    #[arg(long)]
    demo: bool,

    /// How often the demo replaces the server.
    #[arg(long, default_value_t = 5)]
    restarts: u32,

    /// How long each server of the demo serves.
    #[arg(long, default_value = "300ms")]
    serve: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::default()
        .on_task_panic(TaskPanic::Isolate)
        .make()?;
    let (work, patience): (Duration, Duration) = (*options.work, *options.patience);
    executor.run(async {
        match options.control {
            Some(control) if !options.demo => {
                server::run(&control, options.port, work, patience).await
            }
            _ => demo::run(options.restarts, *options.serve).await,
        }
    })
}
