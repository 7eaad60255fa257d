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
    let expiries = now.expiries - before.expiries;
    let early = now.early - before.early;
    let unordered = now.unordered - before.unordered;
    let wakes = now.wakes - before.wakes;
    let unmatched = now.unmatched_wakes - before.unmatched_wakes;
    let unannounced = now.unannounced - before.unannounced;
    let left_behind = now.left_behind - before.left_behind;
    let too_long = now.too_long - before.too_long;
    [
        (
            Invariant::Expiries,
            count(expiries, early, now.early_max_ns.max(1)),
            "timers expired before their deadlines",
        ),
        (
            Invariant::InOrder,
            count(expiries, unordered, 1),
            "timers expired after one with a later deadline",
        ),
        (
            Invariant::Wakes,
            count(wakes, unmatched, 1),
            "calls of wakers without an expiry, or expiries without a call",
        ),
        (
            Invariant::NextExpiry,
            count(expiries, unannounced, 1),
            "timers expired before the next expiry that was told",
        ),
        (
            Invariant::NextExpiry,
            count(now.passes - before.passes, left_behind, 1),
            "times a timer that was due was left in the queue",
        ),
        (
            Invariant::NextExpiry,
            count(now.waits - before.waits, too_long, 1),
            "sleeps and slices were to last past the next expiry",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_entered_by_its_promise() {
        let before = Counts {
            expiries: 10,
            early: 1,
            early_max_ns: 7,
            ..Counts::default()
        };
        let now = Counts {
            expiries: 30,
            wakes: 25,
            unmatched_wakes: 5,
            ..before
        };
        let [expiries, _, wakes, ..] = news(before, now).map(|(_, count, _)| count);
        let is = |count: Count| (count.checks, count.violations, count.worst);
        assert_eq!([is(expiries), is(wakes)], [(20, 0, 0), (25, 5, 1)]);
        let early = Counts { early: 3, ..now };
        assert_eq!(is(news(before, early)[0].1), (20, 2, 7));
    }
}
