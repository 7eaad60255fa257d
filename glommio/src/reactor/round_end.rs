//! Calls at the end of a round.

use std::cell::Cell;
use std::rc::Rc;

use super::Reactor;

/// Looks, when a round of tasks is over, at what they have left: before completions are reaped and before the
/// kernel gets control.
pub(crate) trait RoundEnd {
    /// Must not wake or drop a waker.
    fn round_ended(&self);
}

/// Those that are to be called once.
#[derive(Default)]
pub(super) struct RoundEnds(Cell<Vec<Rc<dyn RoundEnd>>>);

impl Reactor {
    /// Has `it` called at the end of the round that runs, or at the end of the next if none does.
    pub(crate) fn call_at_round_end(&self, it: Rc<dyn RoundEnd>) {
        let mut ends = self.round_ends.0.take();
        ends.push(it);
        self.round_ends.0.set(ends);
    }

    /// The round is over.
    pub(super) fn end_round(&self) {
        let mut ends = self.round_ends.0.take();
        ends.drain(..).for_each(|it| it.round_ended());
        // Kept for its allocation, with what was added meanwhile.
        ends.extend(self.round_ends.0.take());
        self.round_ends.0.set(ends);
    }
}
