//! Tasks of hyper that have the context.

use std::future::Future;

use hyper::rt::Executor;

use crate::{Tokio, WithTokio};

/// An executor for hyper, hyper-util and tonic that spawns by another, and polls what is spawned in
/// the tokio context.
///
/// Around `GlommioExecutor` of `glommio-hyper` it keeps the tasks of connections on our executor,
/// where hyper-util's `TokioExecutor` would send them to the background thread: those of HTTP/2
/// streams, whose handlers use tokio's timers, and those of a pool of clients, whose connections
/// are tokio's sockets.
///
/// # Examples
///
/// ```
/// use std::future::Future;
///
/// use glommio::spawn_local;
/// use glommio_tokio::{Tokio, TokioExecutor};
/// use hyper::rt::Executor;
///
/// /// `GlommioExecutor` of `glommio-hyper` does more.
/// #[derive(Clone)]
/// struct Tasks;
///
/// impl<F: Future + 'static> Executor<F> for Tasks {
///     fn execute(&self, future: F) {
///         spawn_local(async { drop(future.await) }).detach();
///     }
/// }
///
/// glommio::LocalExecutor::default().run(async {
///     let executor = TokioExecutor::new(Tokio::start()?, Tasks);
///     executor.execute(async { tokio::task::yield_now().await });
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug)]
pub struct TokioExecutor<E> {
    tokio: Tokio,
    executor: E,
}

impl<E> TokioExecutor<E> {
    /// Spawns by `executor`, with the context of `tokio`.
    pub fn new(tokio: Tokio, executor: E) -> Self {
        TokioExecutor { tokio, executor }
    }
}

impl<E, F> Executor<F> for TokioExecutor<E>
where
    F: Future,
    E: Executor<WithTokio<F>>,
{
    fn execute(&self, future: F) {
        self.executor.execute(self.tokio.scope(future));
    }
}
