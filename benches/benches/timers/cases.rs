//! What is measured: cases, each of which yields the figures of one or more rows.

use std::time::Duration;

use crate::figures::{Figures, Order, Start};
use crate::measure::{basics, burst, expiry, fixed, latency, memory, mix, peak, table};
use crate::queues::{Queue, TimerQueue};
use crate::workload::Deadlines;

/// A setting in which a queue is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Arm so many timers.
    Insert { timers: usize, start: Start },
    /// Cancel and arm while so many others wait.
    Churn { timers: usize, deadlines: Deadlines },
    /// The same, each operation timed by itself.
    Latency { timers: usize },
    /// Poll with nothing due.
    EmptyPoll { timers: usize },
    /// Polls in which so many of all timers are due.
    Expiry { timers: usize, batch: usize },
    /// Another deadline for an armed timer.
    Rearm { timers: usize },
    /// So many timers of one duration, renewed as time passes, and then fired.
    Fixed { timers: usize },
    /// The question for the next expiry, after a change and again.
    NextExpiry { timers: usize },
    /// 100k timers due in one millisecond.
    Burst(Order),
    /// 100k timers due in one millisecond, so long after the poll before.
    Silence(Duration),
    /// A poll after an hour.
    Stall,
    /// Acknowledgement timeouts of so many messages a millisecond.
    Mix { messages_per_ms: usize },
    /// Create, set, set and expire 100k timers.
    Table,
    /// What the allocator is asked for.
    Memory,
    /// What a peak leaves behind.
    Peak,
}

impl Case {
    /// Measures a timer queue.
    pub fn run<Q: TimerQueue>(self) -> Figures {
        match self {
            Case::EmptyPoll { timers } => latency::empty_poll::<Q>(timers),
            Case::Expiry { timers, batch } => expiry::run::<Q>(timers, batch),
            Case::Fixed { timers } => fixed::run::<Q>(timers),
            Case::Rearm { timers } => basics::rearm::<Q>(timers),
            Case::NextExpiry { timers } => basics::next_expiry::<Q>(timers),
            Case::Burst(order) => burst::burst::<Q>(order),
            Case::Silence(silence) => burst::silence::<Q>(silence),
            Case::Stall => burst::stall::<Q>(),
            Case::Mix { messages_per_ms } => mix::run::<Q>(messages_per_ms),
            Case::Table => table::run::<Q>(),
            Case::Peak => peak::run::<Q>(),
            Case::Latency { timers } => {
                let mut figures = self.run_unordered::<Q>();
                figures.extend(shown(timers, latency::next_expiry::<Q>(timers)));
                figures
            }
            Case::Insert { .. } | Case::Churn { .. } | Case::Memory => self.run_unordered::<Q>(),
        }
    }

    /// Measures what keeps timers in no order; other cases yield nothing.
    pub fn run_unordered<Q: Queue>(self) -> Figures {
        match self {
            Case::Insert { timers, start } => basics::insert::<Q>(timers, start),
            Case::Churn { timers, deadlines } => basics::churn::<Q>(timers, deadlines),
            Case::Latency { timers } => shown(timers, latency::operations::<Q>(timers)),
            Case::Memory => memory::run::<Q>(),
            _ => Vec::new(),
        }
    }

    /// Which quantiles of a latency are shown.
    pub fn quantiles(timers: usize) -> &'static [&'static str] {
        const QUANTILES: &[&str] = &["p50", "p99", "p999"];
        // With few timers everything is in the cache, and the tails are those of the machine.
        if timers < 1_000 {
            &QUANTILES[..1]
        } else {
            QUANTILES
        }
    }

    /// How many timers are in the queue; zero if that is not what the case is about.
    fn timers(self) -> usize {
        match self {
            Case::Insert { timers, .. }
            | Case::Churn { timers, .. }
            | Case::Latency { timers }
            | Case::Expiry { timers, .. }
            | Case::Rearm { timers }
            | Case::Fixed { timers }
            | Case::NextExpiry { timers }
            | Case::EmptyPoll { timers } => timers,
            _ => 100_000,
        }
    }

    /// How many of `rounds` rounds run the case: less where it takes long, one where each would say
    /// the same.
    pub fn rounds(self, rounds: usize) -> usize {
        match self {
            Case::Memory => 1,
            Case::Mix {
                messages_per_ms: 500..,
            }
            | Case::Peak => rounds.div_ceil(4),
            _ if self.timers() >= 1_000_000 => rounds.div_ceil(4),
            _ => rounds,
        }
    }

    /// Whether it is over in no time even without optimisation.
    pub fn is_small(self) -> bool {
        self.timers() <= 1_000
    }
}

/// The figures of the quantiles that are shown, of figures three by three.
fn shown(timers: usize, figures: Figures) -> Figures {
    let quantiles = Case::quantiles(timers).len();
    let chunks = figures.chunks(3).map(|chunk| &chunk[..quantiles]);
    chunks.collect::<Vec<_>>().concat()
}
