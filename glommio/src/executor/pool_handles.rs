//! The handles of a pool: what waits for its shards.

#![forbid(unsafe_code)]

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker, ready};
use std::time::Duration;
use std::{io, thread};

use super::plan::joined;
use super::shard::{Ends, Next};
use crate::clock;
use crate::error::{GlommioError, Result};
use crate::noted::{Awaited, waits_for};
use crate::reactor::{TimerEntry, budget, current};

/// Owned permission to wait for the shards of a pool. Dropping it lets their threads run on.
#[derive(Debug)]
pub struct PoolThreadHandles<T> {
    handles: Vec<thread::JoinHandle<Result<T, ()>>>,
    /// The numbers of the shards that these are the threads of.
    shards: Vec<usize>,
    ends: Arc<Ends>,
}

impl<T> PoolThreadHandles<T> {
    pub(super) fn new(handles: Vec<thread::JoinHandle<Result<T, ()>>>, ends: Arc<Ends>) -> Self {
        PoolThreadHandles {
            shards: (0..handles.len()).collect(),
            handles,
            ends,
        }
    }

    /// The threads of the shards, in the order in which the placement hands out CPUs. Those that
    /// [`join_first`](Self::join_first) has told of are gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
    ///
    /// let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
    ///     .name("shard")
    ///     .on_all_shards(|| async {})?;
    /// assert!(shards.handles().iter().all(|it| it.thread().name().unwrap().starts_with("shard-")));
    /// for result in shards.join_all() {
    ///     result?;
    /// }
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn handles(&self) -> &Vec<thread::JoinHandle<Result<T, ()>>> {
        &self.handles
    }

    /// Waits for the shard that ends first, and returns its number and what became of it: the output
    /// of its future, or the errors of [`join_all`](Self::join_all). Called again, for the next: ends
    /// come in the order in which they happen. `None` when all were returned.
    ///
    /// The number is the place of the shard in [`handles`](Self::handles) at the start. A shard that
    /// is [restarted](crate::ShardExitPolicy::Restart) has not ended.
    ///
    /// Blocks the thread: tasks use [`join_next`](Self::join_next).
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, timer::sleep};
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// # std::panic::set_hook(Box::new(|_| {}));
    /// let has_begun = Arc::new(AtomicBool::new(false));
    /// let mut shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3))
    ///     .on_all_shards(move || async move {
    ///         if has_begun.swap(true, Ordering::Relaxed) {
    ///             sleep(Duration::from_secs(3600)).await;
    ///         }
    ///         panic!("a bug in one of them");
    ///     })?;
    /// let (number, result) = shards.join_first().expect("there are three");
    /// let died: Result<(), glommio::GlommioError<()>> = result;
    /// eprintln!("shard {number}: {}", died.unwrap_err());
    /// assert_eq!(shards.handles().len(), 2);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub fn join_first(&mut self) -> Option<(usize, Result<T, ()>)> {
        if self.shards.is_empty() {
            return None;
        }
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let next = loop {
            match self.ends.next(&self.shards, &waker) {
                Ok(next) => break next,
                Err(None) => thread::park(),
                Err(Some(at)) => {
                    thread::park_timeout(at.saturating_duration_since(clock::real()));
                }
            }
        };
        Some(self.take(next))
    }

    /// As [`join_first`](Self::join_first), for tasks: waits without blocking the thread.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    ///
    /// # Cancel safety
    ///
    /// No end is lost when it is dropped: the next call returns it.
    ///
    /// # Examples
    ///
    /// A service waits for a signal, and for its shards:
    ///
    /// ```
    /// use futures_lite::future::or;
    /// use glommio::{LocalExecutor, LocalExecutorPoolBuilder, PoolPlacement, signal::Signals};
    ///
    /// let mut shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2))
    ///     .try_on_all_shards(|| async { Err::<(), _>("the database is away") })?;
    /// LocalExecutor::default().run(async {
    ///     let signals = Signals::new(&[libc::SIGTERM])?;
    ///     let signal = async { signals.recv().await.map(|_| None) };
    ///     let ended = or(signal, async { Ok(shards.join_next().await) }).await?;
    ///     let (_shard, result) = ended.expect("no signal has come");
    ///     assert_eq!(result?, Err("the database is away"));
    ///     Ok::<_, glommio::GlommioError<()>>(())
    /// })?;
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// ```
    pub async fn join_next(&mut self) -> Option<(usize, Result<T, ()>)> {
        if self.shards.is_empty() {
            budget::consume().await;
            return None;
        }
        let mut timer = TimerEntry::new(current::current());
        let next = poll_fn(|cx| {
            ready!(budget::poll_leave(cx));
            match self.ends.next(&self.shards, cx.waker()) {
                Ok(next) => return Poll::Ready(next),
                // By the clock of the executor, which may be another.
                Err(Some(at)) => {
                    timer.arm(clock::now() + (at - clock::real()), cx.waker());
                }
                Err(None) => {}
            }
            waits_for(Poll::Pending, || Awaited::Other("the end of a shard"))
        });
        let next = next.await;
        budget::spend();
        Some(self.take(next))
    }

    fn take(&mut self, next: Next) -> (usize, Result<T, ()>) {
        let (Next::Ended(shard) | Next::Overdue(shard, _)) = next;
        let place = self.shards.iter().position(|&it| it == shard);
        let place = place.expect("it is one of those that were asked for");
        self.shards.remove(place);
        let handle = self.handles.remove(place);
        let result = match next {
            Next::Ended(_) => joined(handle),
            Next::Overdue(_, grace) => Err(overdue(shard, grace)),
        };
        (shard, result)
    }

    /// Waits for all shards and returns what became of each, in the order of
    /// [`handles`](Self::handles): the output of its future, or why its executor could not be made,
    /// or `BuilderError(ThreadPanic)` with what its thread panicked with, or `IoError` of kind
    /// `TimedOut` if it was told to end and has not within the [grace period](crate::ShardExitPolicy::EndPool).
    pub fn join_all(mut self) -> Vec<Result<T, ()>> {
        let shards = self.shards.clone();
        let mut results: Vec<_> = shards.iter().map(|_| None).collect();
        while let Some((shard, result)) = self.join_first() {
            let place = shards.binary_search(&shard);
            results[place.expect("it was there before")] = Some(result);
        }
        results.into_iter().flatten().collect()
    }
}

fn overdue(shard: usize, grace: Duration) -> GlommioError<()> {
    let text = format!("shard {shard} was told to end and still runs after {grace:?}");
    io::Error::new(io::ErrorKind::TimedOut, text).into()
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
