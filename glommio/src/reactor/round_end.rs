//! Calls at the end of a poll, or of a round.

use std::cell::Cell;
use std::rc::Rc;

use super::Reactor;

/// Looks, when a round of tasks is over, at what they have left: before completions are reaped and
/// before the kernel gets control.
pub(crate) trait RoundEnd {
    /// May wake. Called early where the executor is left.
    fn round_ended(&self);

    /// The same for [`Reactor::call_at_poll_end`].
    fn poll_ended(&self) {}
}

/// Those that are to be called once: when the round that runs is over, and when the next one is.
#[derive(Default)]
pub(super) struct RoundEnds {
    now: Cell<Vec<Rc<dyn RoundEnd>>>,
    next: Cell<Vec<Rc<dyn RoundEnd>>>,
    has_any: Cell<bool>,
    /// Those to be called when the present poll is over.
    after_poll: Cell<Vec<Rc<dyn RoundEnd>>>,
    has_after_poll: Cell<bool>,
}

impl Reactor {
    /// Has `it` called at the end of the round that runs, or at the end of the next if none does.
    /// From a completion that is delivered in the middle of a round it is the end of the next:
    /// that is the one in which those run who were woken.
    pub(crate) fn call_at_round_end(&self, it: Rc<dyn RoundEnd>) {
        let is_mid_round = self.turn_time.is_known() && self.is_delivering.get();
        let ends = match is_mid_round {
            true => &self.round_ends.next,
            false => &self.round_ends.now,
        };
        let mut queued = ends.take();
        queued.push(it);
        ends.set(queued);
        self.round_ends.has_any.set(true);
    }

    /// Has `it` called when the poll of a task is over in which this is called, or, outside of
    /// polls, that of the next one; in any case before the thread may sleep.
    pub(crate) fn call_at_poll_end(&self, it: Rc<dyn RoundEnd>) {
        let mut queued = self.round_ends.after_poll.take();
        queued.push(it);
        self.round_ends.after_poll.set(queued);
        self.round_ends.has_after_poll.set(true);
    }

    /// The poll of a task is over.
    #[inline]
    pub(crate) fn end_poll(&self) {
        if self.round_ends.has_after_poll.get() {
            self.call_poll_ends();
        }
    }

    #[cold]
    fn call_poll_ends(&self) {
        let mut ends = self.round_ends.after_poll.take();
        ends.drain(..).for_each(|it| it.poll_ended());
        // Kept for its allocation, with what was added meanwhile.
        ends.extend(self.round_ends.after_poll.take());
        self.round_ends.has_after_poll.set(!ends.is_empty());
        self.round_ends.after_poll.set(ends);
    }

    /// The round is over.
    #[inline]
    pub(super) fn end_round(&self) {
        self.end_poll();
        if self.round_ends.has_any.take() {
            self.call_round_ends();
        }
    }

    /// The executor is left: there is no next round for a while.
    pub(super) fn end_rounds(&self) {
        // What was to be called now, and what at the end of the next.
        self.end_round();
        self.end_round();
    }

    /// Whether something is to be called before the thread may sleep.
    #[inline]
    pub(super) fn has_round_ends(&self) -> bool {
        self.round_ends.has_any.get() || self.round_ends.has_after_poll.get()
    }

    fn call_round_ends(&self) {
        let RoundEnds {
            now, next, has_any, ..
        } = &self.round_ends;
        let mut ends = now.take();
        ends.drain(..).for_each(|it| it.round_ended());
        // Kept for its allocation, with what was added meanwhile.
        ends.extend(now.take());
        let mut later = next.take();
        ends.append(&mut later);
        has_any.set(!ends.is_empty());
        now.set(ends);
        next.set(later);
    }
}
