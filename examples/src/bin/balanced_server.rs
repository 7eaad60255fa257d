//! An HTTP server whose executors have as many connections as each other, and which survives bugs.
//!
//! ```console
//! $ cargo run --release -p examples --bin balanced_server -- --port 7402 --shards 1
//! listening on http://127.0.0.1:7402
//! $ curl -s http://127.0.0.1:7402/
//! shard 0 has 1 connections
//! $ curl -s http://127.0.0.1:7402/panic || echo "curl says $?"
//! curl says 52
//! $ curl -s http://127.0.0.1:7402/
//! shard 0 has 1 connections
//! $ curl -s http://127.0.0.1:7402/die >/dev/null; curl -s http://127.0.0.1:7402/
//! shard 1 has 1 connections
//! ```
//!
//! All executors accept from one socket, and whichever accepts a connection hands it to the one with
//! the fewest. `/panic` is a bug in a handler: it ends its own connection. `/die` is one in the server
//! itself: it ends its executor with the connections there, no more than the others have, and the
//! pool starts it again (`ShardExitPolicy::Restart`).

#![forbid(unsafe_code)]

use std::error::Error;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Parser;
use futures_lite::future::or;
use glommio::net::{BalancedTcpListener, ShardListener};
use glommio::sync::CancellationToken;
use glommio::timer::sleep;
use glommio::{LocalExecutorPoolBuilder, PanicPolicy, PoolPlacement, ShardExitPolicy, spawn_local};
use glommio_hyper::{Connections, GlommioIo};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};

/// Serves HTTP on as many executors as there are CPUs.
#[derive(Debug, Parser)]
struct Options {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7402)]
    port: u16,

    /// Executors. Default: one for each CPU that this process may use.
    #[arg(long)]
    shards: Option<usize>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let listener = BalancedTcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
    println!("listening on http://{}", listener.local_addr()?);
    let count = options.shards.unwrap_or_else(PoolPlacement::default_shards);
    let starts = Arc::new(AtomicUsize::new(0));
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(count))
        .name("balanced")
        .on_task_panic(PanicPolicy::Isolate)
        .on_shard_end(ShardExitPolicy::Restart { per_minute: 60 })
        .on_shard_restart(|shard, reason| eprintln!("shard {shard} is started again: {reason}"))
        .try_on_all_shards(move || run(listener, starts.fetch_add(1, Ordering::Relaxed)))?;
    for result in shards.join_all() {
        result??;
    }
    Ok(())
}

/// One executor, from its start until it dies.
async fn run(listener: BalancedTcpListener, number: usize) -> glommio::Result<(), ()> {
    let dying = Rc::new(CancellationToken::new());
    let shard = listener.join(number)?;
    or(serve(shard, number, dying.clone()), dying.cancelled()).await;
    panic!("asked to die");
}

/// Serves for ever.
async fn serve(mut listener: ShardListener, number: usize, dying: Rc<CancellationToken>) {
    // A handler that panics closes its connection.
    let connections = Connections::new();
    let http = connections.http1();
    loop {
        let (stream, guard) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (dying, open) = (dying.clone(), connections.clone());
        let service = service_fn(move |request| {
            let answer = answer(&request, number, open.open(), &dying);
            async move { Ok::<_, hyper::Error>(answer) }
        });
        let connection = http.serve_connection(GlommioIo::new(stream), service);
        let served = connections.watch(connection);
        spawn_local(async move {
            // The connection counts as one of this executor until then. A client that sends
            // nonsense or leaves ends its own.
            let _guard = guard;
            let _ = served.await;
        })
        .detach();
    }
}

fn answer(
    request: &Request<Incoming>,
    number: usize,
    open: usize,
    dying: &CancellationToken,
) -> Response<Full<Bytes>> {
    match request.uri().path() {
        "/panic" => panic!("a bug in a handler"),
        "/die" => dying.cancel(),
        _ => {}
    }
    let text = format!("shard {number} has {open} connections\n");
    Response::new(Full::new(text.into()))
}
