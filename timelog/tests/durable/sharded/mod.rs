//! A log for each executor, written by key.

mod ends;
mod killed;
mod use_;

pub use killed::write_until_killed;

use std::future::Future;
use std::path::Path;

use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
use timelog::Ts;
use timelog::durable::{Config, Error, Mesh, Refused, ShardCommit, Sharded};

use super::history::Value;
pub use super::quick;

/// Runs a future on each of so many executors; what each gave, by their order, or its panic.
pub fn on_each<F, T>(
    shards: usize,
    run: impl FnOnce(Mesh<Value>) -> F + Clone + Send + 'static,
) -> Vec<Result<T, glommio::GlommioError<()>>>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let mesh = Mesh::new(shards);
    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(shards));
    let pool = pool.on_all_shards(move || run(mesh));
    pool.expect("they can be started").join_all()
}

/// As [`on_each`], with a log that is open, and closed at the end.
pub fn with_log<F, T>(
    shards: usize,
    folder: &Path,
    config: Config,
    run: impl FnOnce(Sharded<Value>) -> F + Clone + Send + 'static,
) -> Vec<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let folder = folder.to_owned();
    let each = on_each(shards, move |mesh| async move {
        let opened = Sharded::open(mesh, folder, config).await;
        let (log, _) = opened.expect("nothing fails");
        let result = run(log.clone()).await;
        log.close().await.expect("nothing fails");
        result
    });
    each.into_iter()
        .map(|it| it.expect("nothing panics"))
        .collect()
}

/// What each shard says that opens the log and closes it.
pub fn try_open(shards: usize, folder: &Path) -> Vec<Result<(), Error>> {
    let folder = folder.to_owned();
    let each = on_each(shards, move |mesh| async move {
        let (log, _) = Sharded::open(mesh, folder, quick()).await?;
        log.close().await
    });
    each.into_iter()
        .map(|it| it.expect("nothing panics"))
        .collect()
}

/// The rows that each shard sees.
pub fn counts(shards: usize, folder: &Path) -> Vec<u64> {
    with_log(shards, folder, quick(), |log| async move {
        log.snapshots().await.expect("all are there").count(..)
    })
}

/// Why rows were refused, here or there.
pub async fn refused(
    written: impl Future<Output = Result<ShardCommit<Value>, Refused<Rows>>>,
) -> Refused<Rows> {
    match written.await {
        Ok(commit) => commit.await.expect_err("they are refused"),
        Err(refused) => refused,
    }
}

type Rows = Vec<(Ts, Value)>;

/// The shard that failed, and why.
pub fn cause(error: &Error) -> (usize, &Error) {
    match error {
        Error::Shard { shard, cause } => (*shard, cause),
        _ => panic!("{error}"),
    }
}

pub const KEYS: u64 = 12;

pub fn key(key: u64) -> [u8; 8] {
    key.to_le_bytes()
}
