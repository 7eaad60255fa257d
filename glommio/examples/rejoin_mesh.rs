//! A shard that was restarted meets the others in a new mesh.
//!
//! ```console
//! $ cargo run --release -p glommio --example rejoin_mesh
//! all shards have ended, after 4 starts
//! ```
//!
//! Each peer joins a `channel_mesh` once. The builder of the current mesh is in a `watch`, with a number. A shard that is
//! restarted replaces it; the others leave the old mesh when they see another number.

use futures_lite::FutureExt;
use glommio::channels::channel_mesh::{Full, MeshBuilder};
use glommio::channels::watch;
use glommio::{
    GlommioError, LocalExecutorPoolBuilder, PoolPlacement, ShardExitPolicy, task::JoinSet,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const SHARDS: usize = 3;
type Mesh = MeshBuilder<&'static str, Full>;

/// Serves until a peer says that all is done. If a peer dies instead, waits to be given up.
async fn serve(mesh: Mesh, start: usize) -> Result<(), GlommioError<()>> {
    let (senders, mut receivers) = mesh.join().await?;
    if start == 0 {
        panic!("a bug in the shard that was started first");
    }
    if start == SHARDS {
        for peer in (0..SHARDS).filter(|&peer| peer != senders.peer_id()) {
            senders
                .send_to(peer, "done")
                .await
                .expect("a peer of the new mesh");
        }
        return Ok(());
    }
    let mut peers = JoinSet::new();
    for (_, peer) in receivers.streams() {
        peers.spawn(async move { peer.recv().await });
    }
    while let Some(message) = peers.join_next().await {
        if message == Ok(Some("done")) {
            return Ok(());
        }
    }
    std::future::pending().await
}

fn main() -> Result<(), GlommioError<()>> {
    let (sender, current) = watch::shared((0, Mesh::full(SHARDS, 16)));
    let sender = Arc::new(Mutex::new(sender));
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(SHARDS))
        .on_shard_end(ShardExitPolicy::Restart { per_minute: 5 })
        .on_all_shards(move || async move {
            let mut current = current;
            let start = starts.fetch_add(1, Ordering::Relaxed);
            if start >= SHARDS {
                // A restart: all are to meet in a new mesh.
                let sender = sender.lock().unwrap();
                let number = sender.with_current(|(number, _)| number + 1);
                let _ = sender.send((number, Mesh::full(SHARDS, 16)));
            }
            loop {
                let (number, mesh) = current.get();
                let serve = async { Some(serve(mesh, start).await) };
                let replaced = async {
                    while current.with_current(|(newest, _)| *newest == number) {
                        current.changed().await.ok();
                    }
                    None
                };
                if let Some(result) = serve.or(replaced).await {
                    return result;
                }
            }
        })?;
    for result in shards.join_all() {
        result??;
    }
    println!(
        "all shards have ended, after {} starts",
        counted.load(Ordering::Relaxed)
    );
    Ok(())
}
