//! Calls at the end of a poll, or of a round.

use std::cell::Cell;
use std::rc::Rc;

/// Looks, when a round of tasks is over, at what they have left: before completions are reaped and
/// before the kernel gets control.
pub(crate) trait RoundEnd {
    /// May wake. Called early where the executor is left.
    fn round_ended(&self);

    /// As [`round_ended`](Self::round_ended), for [`RoundEnds::call_at_poll_end`].
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

impl RoundEnds {
    /// Has `it` called at the end of the round that runs, or at the end of the next if none does or
    /// that one is meant (`is_next`).
    pub(super) fn call_at_round_end(&self, it: Rc<dyn RoundEnd>, is_next: bool) {
        let ends = if is_next { &self.next } else { &self.now };
        let mut queued = ends.take();
        queued.push(it);
        ends.set(queued);
        self.has_any.set(true);
    }

    /// Has `it` called when the poll of a task is over in which this is called, or, outside of
    /// polls, that of the next one; in any case before the thread may sleep.
    pub(super) fn call_at_poll_end(&self, it: Rc<dyn RoundEnd>) {
        let mut queued = self.after_poll.take();
        queued.push(it);
        self.after_poll.set(queued);
        self.has_after_poll.set(true);
    }

    /// The poll of a task is over.
    #[inline]
    pub(super) fn end_poll(&self) {
        if self.has_after_poll.get() {
            self.call_poll_ends();
        }
    }

    #[cold]
    fn call_poll_ends(&self) {
        let mut ends = self.after_poll.take();
        ends.drain(..).for_each(|it| it.poll_ended());
        // Kept for its allocation, with what was added meanwhile.
        ends.extend(self.after_poll.take());
        self.has_after_poll.set(!ends.is_empty());
        self.after_poll.set(ends);
    }

    /// The round is over.
    #[inline]
    pub(super) fn end_round(&self) {
        self.end_poll();
        if self.has_any.take() {
            self.call_round_ends();
        }
    }

    /// Whether something is to be called before the thread may sleep.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        self.has_any.get() || self.has_after_poll.get()
    }

    fn call_round_ends(&self) {
        let RoundEnds {
            now, next, has_any, ..
        } = self;
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
