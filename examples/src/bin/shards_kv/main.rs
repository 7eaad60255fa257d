//! A key-value server in which each executor owns a part of the keys.
//!
//! ```console
//! $ cargo run --release -p examples --bin shards_kv -- --shards 2 --port 7070
//! $ nc 127.0.0.1 7070
//! SET colour blue
//! OK
//! GET colour
//! blue
//! ```
//!
//! A connection is served by the executor that the kernel has chosen for it, and a key belongs to
//! the executor that its hash says. A command about a key of another executor goes there through a
//! channel of the mesh, along with the sender of a `oneshot` channel for the answer. No map is
//! locked: each is used by its own thread alone.
//!
//! # Ending
//!
//! Ctrl-C cancels a token, and with it those that the executors have attached to it. Each executor
//! then
//!
//! 1. stops accepting, and reads no more commands: connections end after the answer that is under
//!    way;
//! 2. closes its gate, and so waits until all of its connections have ended;
//! 3. closes its channels to the others, which get no more requests from it, and
//! 4. answers theirs until they have closed their channels too.
//!
//! So no command that was read is left without its answer, and no executor ends while another may
//! ask it.

#![forbid(unsafe_code)]

mod command;
mod shard;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use clap::Parser;
use glommio::channels::channel_mesh::{FullMesh, MeshBuilder};
use glommio::net::TcpListener;
use glommio::sync::{CancellationToken, ForeignCancellation};
use glommio::{LocalExecutorPoolBuilder, PoolPlacement, TaskPanic};
use shard::{Question, Shard, Summary};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Serves a map from words to texts.
#[derive(Clone, Debug, Parser)]
#[command(name = "shards_kv")]
struct Options {
    /// Executors, each with a thread and a part of the keys.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,

    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7070)]
    port: u16,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let shards = usize::from(options.shards);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
    let address = Arc::new(Mutex::new(address));
    let mesh: FullMesh<Question> = MeshBuilder::full(shards, CHANNEL_SIZE);
    let shutdown = CancellationToken::new();
    let ending = shutdown.foreign_child();
    let (report, reports) = mpsc::channel();

    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards))
        .name("shard")
        .on_task_panic(TaskPanic::Isolate);
    let executors = pool.on_all_shards({
        let address = Arc::clone(&address);
        move || run(mesh, address, ending, report)
    })?;
    for _ in 0..shards {
        // The others wait at the mesh for one that fails, and end with the process.
        let report = reports.recv_timeout(START_PATIENCE);
        report.map_err(|_| "not all executors have started")??;
    }
    let address = *address.lock().unwrap_or_else(PoisonError::into_inner);
    println!("listening on {address}");
    signals.forever().next();
    shutdown.cancel();
    let mut total = Summary::default();
    for summary in executors.join_all() {
        total += summary?;
    }
    println!("{total}");
    Ok(())
}

/// The life of one executor.
async fn run(
    mesh: FullMesh<Question>,
    address: Arc<Mutex<SocketAddr>>,
    ending: ForeignCancellation,
    report: mpsc::Sender<glommio::Result<(), ()>>,
) -> Summary {
    let started = async {
        let listener = listen(&address)?;
        let (senders, receivers) = mesh.join().await?;
        Ok((listener, senders, receivers))
    };
    let (result, started) = match started.await {
        Ok(started) => (Ok(()), Some(started)),
        Err(error) => (Err(error), None),
    };
    // Not received if `main` has given up, and then the process ends.
    let is_awaited = report.send(result).is_ok();
    let Some((listener, senders, receivers)) = started.filter(|_| is_awaited) else {
        return Summary::default();
    };
    let shard = Shard::new(senders);
    let answering = shard.answer_others(receivers);
    shard.serve(listener, ending.attach()).await;
    for source in answering {
        source.await;
    }
    shard.summary()
}

/// Listens on `address`, in which port 0 becomes the port that the first executor is given.
fn listen(address: &Mutex<SocketAddr>) -> glommio::Result<TcpListener, ()> {
    let mut address = address.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind(*address)?;
    *address = listener.local_addr()?;
    Ok(listener)
}

/// Requests under way from one executor to another, before further senders wait.
const CHANNEL_SIZE: usize = 128;
const START_PATIENCE: Duration = Duration::from_secs(10);
