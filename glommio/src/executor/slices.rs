//! How long a round of tasks may last: the least that an active queue asks for.
//!
//! Queues are counted by what they ask for, so that no turn looks at each of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use crate::shares::{Latency, SHARES_MAX};

/// The shortest turn that shares make: each ends with a look at the reactor, which takes a
/// microsecond or two.
const SHORTEST: Duration = Duration::from_millis(1);

/// What the active queues ask for.
#[derive(Debug)]
pub(super) struct Slices {
    /// For queues without latency, and for none at all.
    default: Duration,
    without_latency: Cell<usize>,
    /// Queues by latency; no count is zero.
    by_latency: RefCell<BTreeMap<Duration, usize>>,
}

impl Slices {
    pub(super) fn new(default: Duration) -> Self {
        Slices {
            default,
            without_latency: Cell::new(0),
            by_latency: RefCell::default(),
        }
    }

    /// A queue becomes active.
    #[inline]
    pub(super) fn enter(&self, latency: Latency) {
        match latency {
            Latency::NotImportant => self.without_latency.update(|queues| queues + 1),
            Latency::Matters(latency) => {
                *self.by_latency.borrow_mut().entry(latency).or_default() += 1;
            }
        }
    }

    /// A queue is active no more.
    #[inline]
    pub(super) fn leave(&self, latency: Latency) {
        match latency {
            Latency::NotImportant => self.without_latency.update(|queues| queues - 1),
            Latency::Matters(latency) => {
                let mut by_latency = self.by_latency.borrow_mut();
                let queues = by_latency
                    .get_mut(&latency)
                    .expect("a queue is active before it is not");
                *queues -= 1;
                if *queues == 0 {
                    by_latency.remove(&latency);
                }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn default(&self) -> Duration {
        self.default
    }

    /// How long a turn may last of a queue with so many `shares` beside others: in proportion, so
    /// that each is charged the same for one and waits no longer than a round of all takes.
    pub(super) fn by_shares(&self, shares: usize) -> Duration {
        let part = self.default / SHARES_MAX as u32 * shares as u32;
        part.max(SHORTEST.min(self.default))
    }

    /// How long the executor may go without coming round.
    pub(super) fn least(&self) -> Duration {
        match self.by_latency.borrow().first_key_value() {
            None => self.default,
            Some((&latency, _)) if self.without_latency.get() == 0 => latency,
            Some((&latency, _)) => latency.min(self.default),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEFAULT: Duration = Duration::from_millis(100);

    /// What a look at each of the active queues finds.
    fn scan(active: &[Latency]) -> Duration {
        let slices = active.iter().map(|latency| match latency {
            Latency::Matters(latency) => *latency,
            Latency::NotImportant => DEFAULT,
        });
        slices.min().unwrap_or(DEFAULT)
    }

    fn latency() -> impl Strategy<Value = Latency> {
        prop_oneof![
            Just(Latency::NotImportant),
            (0u64..8).prop_map(|unit| Latency::Matters(DEFAULT * unit as u32 / 4)),
        ]
    }

    #[test]
    fn turns_are_as_long_as_shares_say() {
        let (slices, ms) = (Slices::new(DEFAULT), Duration::from_millis(1));
        for (shares, turn) in [(999, 99_900), (500, 50_000), (10, 1000), (1, 1000)] {
            assert_eq!(slices.by_shares(shares), ms * turn / 1000);
        }
        assert_eq!(Slices::new(ms / 2).by_shares(1), ms / 2);
        assert!(Slices::new(Duration::MAX).by_shares(1) < Duration::MAX / 999);
    }

    proptest! {
        /// Counting tells the same as looking at each.
        #[test]
        fn the_least_slice_is_that_of_a_scan(
            steps in prop::collection::vec((any::<bool>(), latency(), any::<prop::sample::Index>()), 0..200),
        ) {
            let slices = Slices::new(DEFAULT);
            let mut active = Vec::new();
            for (enters, latency, which) in steps {
                if enters || active.is_empty() {
                    slices.enter(latency);
                    active.push(latency);
                } else {
                    slices.leave(active.swap_remove(which.index(active.len())));
                }
                prop_assert_eq!(slices.least(), scan(&active));
            }
        }
    }
}
