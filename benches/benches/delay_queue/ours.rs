//! `glommio::timer::DelayQueue`.

use std::time::Instant;

use glommio::LocalExecutor;
use glommio::timer::DelayQueue;
use glommio::timer::delay_queue::Key;

use crate::measure::{self, Delays, Figures};

/// Measures one, on an executor of its own.
pub fn run(items: usize) -> Figures {
    LocalExecutor::default().run(async { measure::run(Ours(DelayQueue::new()), items).await })
}

struct Ours(DelayQueue<usize>);

impl Delays for Ours {
    type Key = Key;

    fn insert(&mut self, item: usize, deadline: Instant) -> Key {
        self.0.insert_at(item, deadline)
    }

    fn reset(&mut self, key: &Key, deadline: Instant) {
        assert!(self.0.reset_at(*key, deadline));
    }

    fn remove(&mut self, key: &Key) -> usize {
        self.0.remove(*key).expect("it is in the queue")
    }

    async fn next(&mut self) -> usize {
        self.0.next_expired().await.into_inner()
    }
}
