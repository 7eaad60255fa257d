//! What the library counts of its own reactors, as a ledger: see [`glommio::audit`].

use glommio::audit::{self, Counts};

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
            ledger: Ledger::new(),
            entered: audit::counts(),
        }
    }

    /// Enters what was counted since the last look.
    pub(crate) fn look(&mut self) {
        let now = audit::counts();
        let before = std::mem::replace(&mut self.entered, now);
        for (invariant, count, words) in news(before, now) {
            self.ledger
                .enter(invariant, count, || format!("{} {words}", count.violations));
        }
    }
}

/// By invariant, with what its violations are.
fn news(before: Counts, now: Counts) -> [(Invariant, Count, &'static str); 6] {
    let count = |checks, violations, worst| Count {
        checks,
        violations,
        worst: if violations > 0 { worst } else { 0 },
    };
    let new = |of: fn(Counts) -> u64| of(now) - of(before);
    let expiries = new(|it| it.expiries);
    let early = count(expiries, new(|it| it.early), now.early_max_ns.max(1));
    let unordered = count(expiries, new(|it| it.unordered), 1);
    let unmatched = count(new(|it| it.wakes), new(|it| it.unmatched_wakes), 1);
    let unannounced = count(expiries, new(|it| it.unannounced), 1);
    let left_behind = count(new(|it| it.passes), new(|it| it.left_behind), 1);
    let too_long = count(new(|it| it.waits), new(|it| it.too_long), 1);
    use Invariant::{Expiries, InOrder, NextExpiry, Wakes};
    [
        (Expiries, early, "timers expired before their deadlines"),
        (
            InOrder,
            unordered,
            "timers expired after one with a later deadline",
        ),
        (
            Wakes,
            unmatched,
            "calls of wakers without an expiry, or expiries without a call",
        ),
        (
            NextExpiry,
            unannounced,
            "timers expired before the next expiry that was told",
        ),
        (
            NextExpiry,
            left_behind,
            "times a timer that was due was left in the queue",
        ),
        (
            NextExpiry,
            too_long,
            "sleeps and slices were to last past the next expiry",
        ),
    ]
}
