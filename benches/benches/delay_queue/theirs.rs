//! `tokio_util::time::DelayQueue`.

use std::future::poll_fn;
use std::time::Instant;

use tokio::runtime::Builder;
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::Key;

use crate::measure::{self, Delays, Figures};

/// Measures one, on a runtime of its own, of one thread.
pub fn run(items: usize) -> Figures {
    let runtime = Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a runtime without I/O asks the system for nothing");
    runtime.block_on(async { measure::run(Theirs(DelayQueue::new()), items).await })
}

struct Theirs(DelayQueue<usize>);

impl Delays for Theirs {
    type Key = Key;

    fn insert(&mut self, item: usize, deadline: Instant) -> Key {
        self.0.insert_at(item, deadline.into())
    }

    fn reset(&mut self, key: &Key, deadline: Instant) {
        self.0.reset_at(key, deadline.into());
    }

    fn remove(&mut self, key: &Key) -> usize {
        self.0.remove(key).into_inner()
    }

    async fn next(&mut self) -> usize {
        let expired = poll_fn(|cx| self.0.poll_expired(cx)).await;
        expired.expect("an item is left").into_inner()
    }
}
