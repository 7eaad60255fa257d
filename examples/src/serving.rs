//! What the servers here have in common: an address, an executor per CPU, a limit of connections, and
//! an end by Ctrl-C.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use futures_lite::future::or;
use glommio::net::{BalancedTcpListener, ConnectionLimit, ShardListener, TcpStream};
use glommio::signal::{self, Signals};
use glommio::sync::CancellationToken;
use glommio::timer::sleep;
use glommio::{
    GlommioError, LocalExecutor, LocalExecutorPoolBuilder, PanicPolicy, PoolPlacement, spawn_local,
};
use libc::{SIGINT, SIGTERM};

/// Options of each server.
#[derive(Clone, Copy, Debug, Args)]
pub struct Serving {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,

    /// Executors, each with a thread of its own. Default: one for each CPU.
    #[arg(long)]
    pub shards: Option<usize>,

    /// Connections of one executor at a time; more have to wait.
    #[arg(long, default_value_t = 100_000)]
    pub max_connections: usize,

    /// How long what has begun may take when the server ends.
    #[arg(long, default_value = "5s")]
    pub grace: humantime::Duration,
}

/// One executor of a server.
pub struct Shard {
    /// Its number.
    pub id: usize,
    /// Cancelled when the server is to end.
    pub stop: CancellationToken,
    listener: ShardListener,
    limit: ConnectionLimit,
}

impl Serving {
    /// Runs `shard` on each executor. A signal, or the end of one, has all end; a second signal ends
    /// the process at once.
    ///
    /// # Errors
    ///
    /// If it cannot listen, or a shard panics.
    pub fn run<T: Send + 'static, F: Future<Output = T> + 'static>(
        self,
        scheme: &str,
        shard: impl FnOnce(Shard) -> F + Clone + Send + 'static,
    ) -> Result<Vec<T>, Box<dyn Error>> {
        self.run_at(scheme, |_, _| Ok(shard.clone()))
    }

    /// As [`run`](Self::run), with the `shard` that `bind` makes for the address and the number of
    /// executors, and which may have sockets of its own there.
    ///
    /// # Errors
    ///
    /// As `run`, and those of `bind`.
    pub fn run_at<T: Send + 'static, F: Future<Output = T> + 'static, S>(
        self,
        scheme: &str,
        bind: impl Fn(SocketAddr, usize) -> io::Result<S>,
    ) -> Result<Vec<T>, Box<dyn Error>>
    where
        S: FnOnce(Shard) -> F + Clone + Send + 'static,
    {
        // Before there are other threads, which inherit it.
        signal::block(&[SIGINT, SIGTERM])?;
        let shards = self.shards.unwrap_or_else(PoolPlacement::default_shards);
        let (listener, shard) = loop {
            let listener = BalancedTcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
            match bind(listener.local_addr()?, shards) {
                // A port that is free for TCP is not for all that `bind` makes.
                Err(error) if self.port == 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                bound => break (listener, bound?),
            }
        };
        println!("listening on {scheme}{}", listener.local_addr()?);
        let (stop, ids) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
        let stopping = stop.foreign_child();
        let mut shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards))
            .name("shard")
            .on_task_panic(PanicPolicy::Isolate)
            // One wake of the thread serves all timeouts that are due within it.
            .timer_slack(Duration::from_millis(1))
            .try_on_all_shards(move || async move {
                let id = ids.fetch_add(1, Ordering::Relaxed);
                let ended = shard(Shard {
                    id,
                    stop: stopping.attach(),
                    listener: listener.join(id)?,
                    limit: ConnectionLimit::new(self.max_connections),
                });
                Ok::<_, GlommioError<()>>(ended.await)
            })?;
        LocalExecutor::default().run(async {
            let signals = Signals::new(&[SIGINT, SIGTERM])?;
            let asked = async { signals.recv().await.map(|_| None) };
            let first = or(asked, async { Ok(shards.join_next().await) }).await?;
            stop.cancel();
            let mut ends = Vec::from_iter(first);
            let finish = async {
                while let Some(next) = shards.join_next().await {
                    ends.push(next);
                }
                Ok(())
            };
            let hurry = async { signals.recv().await.map(|_| process::exit(1)) };
            or(finish, hurry).await?;
            ends.into_iter().map(|(_, end)| Ok(end??)).collect()
        })
    }
}

impl Shard {
    /// Gives each connection to `serve`, in a task of its own, until the server is to end.
    pub async fn serve_each<F: Future<Output = ()> + 'static>(
        mut self,
        serve: impl Fn(TcpStream) -> F,
    ) {
        let accept = async {
            loop {
                let place = self.limit.place().await;
                match self.listener.accept().await {
                    Ok((stream, guard)) => {
                        let connection = serve(stream);
                        // A task whose handle is dropped is cancelled; this one runs on by itself.
                        spawn_local(async move {
                            connection.await;
                            drop((place, guard));
                        })
                        .detach();
                    }
                    Err(error) => {
                        // Out of descriptors, most likely. They come back as connections end.
                        eprintln!("cannot accept: {error}");
                        sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        };
        or(accept, self.stop.cancelled()).await;
    }
}
