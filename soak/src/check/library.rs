//! What the library counts of its own reactors, as a ledger: see [`glommio::audit`].

use glommio::audit::{self, Counts};

use crate::check::invariants::Invariant::{Expiries, InOrder, NextExpiry, Wakes};
use crate::check::invariants::{Count, Invariant, Ledger};

/// The library's counts, as far as they were entered.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) ledger: Ledger,
    entered: Counts,
}

impl Library {
    /// From now on.
    pub(crate) fn new() -> Self {
        Library {
            ledger: Ledger::default(),
            entered: audit::counts(),
        }
    }

    /// Enters what was counted since the last look.
    pub(crate) fn look(&mut self) {
        let now = audit::counts();
        let before = std::mem::replace(&mut self.entered, now);
        for (invariant, checks, violations, words) in COUNTED {
            let new = |of: Counter| of(now) - of(before);
            let (checks, violations) = (new(checks), new(violations));
            let worst = match invariant {
                Expiries => now.early_max_ns.max(1),
                _ => 1,
            };
            let count = Count {
                checks,
                violations,
                worst,
            };
            self.ledger
                .enter(invariant, count, || format!("{violations} {words}"));
        }
    }
}

type Counter = fn(Counts) -> u64;

/// By invariant: its checks, its violations, and what these are.
#[rustfmt::skip]
const COUNTED: [(Invariant, Counter, Counter, &str); 6] = [
    (Expiries, |it| it.expiries, |it| it.early, "timers expired before their deadlines"),
    (InOrder, |it| it.expiries, |it| it.unordered, "timers expired after one with a later deadline"),
    (Wakes, |it| it.wakes, |it| it.unmatched_wakes, "calls of wakers without an expiry, or expiries without a call"),
    (NextExpiry, |it| it.expiries, |it| it.unannounced, "timers expired before the next expiry that was told"),
    (NextExpiry, |it| it.passes, |it| it.left_behind, "times a timer that was due was left in the queue"),
    (NextExpiry, |it| it.waits, |it| it.too_long, "sleeps and slices were to last past the next expiry"),
];
