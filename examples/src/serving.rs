//! How servers end.

use std::error::Error;
use std::future::{Future, pending};
use std::process;

use futures_lite::future::or;
use glommio::signal::Signals;
use glommio::sync::CancellationToken;
use glommio::{LocalExecutor, PoolThreadHandles};
use libc::{SIGINT, SIGTERM};

/// Waits for a signal, which is blocked already, or for the end of a shard: a server that has lost one
/// would serve too few clients, or none. Then has all of them stop, and waits for them. A second
/// signal ends the process at once.
///
/// # Errors
///
/// That of a shard. Each is in the log.
pub fn until_stopped<E>(
    mut shards: PoolThreadHandles<Result<(), E>>,
    stop: CancellationToken,
) -> Result<(), Box<dyn Error>>
where
    E: Into<Box<dyn Error>>,
{
    LocalExecutor::default().run(async {
        let signals = Signals::new(&[SIGINT, SIGTERM])?;
        let asked = async { signals.recv().await.map(|_| None) };
        let ended = or(asked, async { Ok(shards.join_next().await) }).await?;
        stop.cancel();
        let finish = async {
            let mut results = Vec::from_iter(ended);
            while let Some(next) = shards.join_next().await {
                results.push(next);
            }
            results
        };
        for (_, result) in unless_hurried(&signals, finish).await {
            result?.map_err(Into::into)?;
        }
        Ok(())
    })
}

/// Awaits `finish`. A signal meanwhile ends the process at once.
pub async fn unless_hurried<T>(signals: &Signals, finish: impl Future<Output = T>) -> T {
    let hurry = async {
        if signals.recv().await.is_err() {
            // Nothing is known of signals any more.
            pending::<()>().await;
        }
        process::exit(1)
    };
    or(finish, hurry).await
}
