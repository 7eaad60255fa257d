//! A log for each executor, written by key.

mod ends;
mod killed;
mod use_;

pub use killed::write_until_killed;

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
use timelog::durable::{Config, Error, Mesh, Sharded};

use super::history::Value;

pub fn quick() -> Config {
    Config::default()
        .wal_file_bytes(64 << 10)
        .wake_up(Duration::from_millis(1))
}

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
