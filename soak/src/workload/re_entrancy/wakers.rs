//! `Timer`s polled by hand with wakers of our own, which act on other timers while they are called,
//! and again while they are dropped.
//!
//! ```text
//!   reactor ──▶ Hook::wake ──▶ poll my timer ──▶ it fired ──▶ reset, drop, poll others, arm anew
//!   timer dropped or polled again ──▶ Hook::drop ──▶ the same to others, a few levels deep
//! ```

use std::task::Wake;

use super::cycle::Waits;
use super::slots::Slots;
use crate::workload::prelude::*;

thread_local! {
    /// Wakers must be `Send` and so cannot hold the arena; they are called where it is.
    static ARENA: RefCell<Option<Rc<Arena>>> = const { RefCell::new(None) };
}

pub(crate) struct Arena {
    pub(super) slots: Slots<Armed>,
    checker: Rc<Checker>,
    /// Wakers that the library has not dropped yet.
    hooks: Cell<i64>,
}

pub(super) struct Armed {
    timer: Timer,
    key: Key,
    _live: Live,
}

impl Arena {
    /// With no slots yet.
    pub(super) fn start(checker: &Rc<Checker>, rng: Rng, waits: Waits) -> Rc<Self> {
        let arena = Rc::new(Arena {
            slots: Slots::new(checker, rng, waits),
            checker: Rc::clone(checker),
            hooks: Cell::new(0),
        });
        ARENA.set(Some(Rc::clone(&arena)));
        arena
    }

    /// Arms a timer in every slot that is new, or drops those beyond `count`, armed as they are.
    pub(super) fn resize(&self, count: usize) {
        let new = self.slots.resize(count, |armed| self.cancel(armed));
        new.for_each(|index| self.arm(index));
    }

    /// Arms a timer in every empty slot.
    pub(super) fn refill(&self) {
        self.slots.empty().for_each(|index| self.arm(index));
    }

    fn cancel(&self, armed: Armed) {
        self.checker.cancel(armed.key);
        drop(armed);
    }

    /// After the run has settled: the library has dropped every waker it was given.
    pub(crate) fn judge_hooks(&self) {
        ARENA.set(None);
        let hooks = self.hooks.get();
        let left = hooks.unsigned_abs();
        self.checker.check(Invariant::LiveTimers, left, || {
            format!("{hooks} wakers were left behind")
        });
    }

    /// In a slot that is empty.
    fn arm(&self, index: usize) {
        let ticket = self.checker.arm(clock::now() + self.slots.draw());
        let timer = Timer::new(ticket.delay());
        let (key, _live) = (ticket.key, ticket.live);
        self.poll(index, Armed { timer, key, _live });
    }

    /// Polls a timer that was taken out of its slot, and puts it back unless it has fired.
    fn poll(&self, index: usize, mut armed: Armed) {
        let waker = Waker::from(Hook::new(index, &self.hooks));
        let polled = Pin::new(&mut armed.timer).poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Pending => self.slots.put(index, armed),
            Poll::Ready(scheduled) => self.fired(index, armed, scheduled),
        }
    }

    fn fired(&self, index: usize, armed: Armed, scheduled: Instant) {
        let early = nanos(scheduled.saturating_duration_since(clock::now()));
        let key = armed.key;
        self.checker.check(Invariant::NothingEarly, early, || {
            let key = key.0;
            format!("timer {key} was ready {early} ns before the deadline it named")
        });
        self.checker.fired(key);
        drop(armed);
        self.slots.inside_callback(|| {
            let pranks = self.slots.rng.borrow_mut().u64(..3);
            for _ in 0..pranks {
                self.mischief();
            }
            if self.slots.is_free(index, |_| false) {
                self.arm(index);
            }
        });
    }

    /// Something wants this slot's timer polled: mostly its deadline, now and then a wake that was
    /// under way when the timer was reset, dropped or replaced.
    fn woken(&self, index: usize) {
        if let Some(armed) = self.slots.take(index) {
            self.poll(index, armed);
        }
    }

    fn waker_dropped(&self) {
        let acts = self.slots.rng.borrow_mut().chance(1, 4);
        if acts {
            self.slots.inside_callback(|| self.mischief());
        }
    }

    /// Does something to a random timer.
    fn mischief(&self) {
        let Some((index, choice)) = self.slots.mischief() else {
            return;
        };
        let Some(mut armed) = self.slots.take(index) else {
            return;
        };
        match choice {
            // Its waker stays with it, so it need not be polled again.
            0..50 => {
                let deadline = clock::now() + self.slots.draw();
                self.checker.rearm(armed.key, deadline);
                let delay = deadline.saturating_duration_since(clock::now());
                armed.timer.reset(delay);
                self.slots.put(index, armed);
            }
            50..75 => self.cancel(armed),
            // A new waker replaces the old one, whose destructor is one of ours.
            _ => self.poll(index, armed),
        }
    }
}

/// The waker.
struct Hook {
    index: usize,
}

impl Hook {
    fn new(index: usize, hooks: &Cell<i64>) -> Arc<Self> {
        hooks.set(hooks.get() + 1);
        Arc::new(Hook { index })
    }
}

impl Wake for Hook {
    fn wake(self: Arc<Self>) {
        if let Some(arena) = arena() {
            arena.woken(self.index);
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        if let Some(arena) = arena() {
            arena.hooks.set(arena.hooks.get() - 1);
            arena.waker_dropped();
        }
    }
}

fn arena() -> Option<Rc<Arena>> {
    // Fails only while the thread ends, when there is nothing left to do.
    let arena = ARENA.try_with(|arena| arena.borrow().clone());
    arena.ok().flatten()
}
