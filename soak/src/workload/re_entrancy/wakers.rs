//! `Timer`s polled by hand with wakers of our own, which act on other timers while they are called,
//! and again while they are dropped.
//!
//! ```text
//!   reactor ──▶ Hook::wake ──▶ poll my timer ──▶ it fired ──▶ reset, drop, poll others, arm anew
//!   timer dropped or polled again ──▶ Hook::drop ──▶ the same to others, a few levels deep
//! ```
//!
//! A timer is taken out of its slot before anything is done to it, so that whatever runs inside
//! finds the slot empty and leaves it alone. No borrow is held across a call into the library.

use std::task::Wake;

use super::cycle::Waits;
use crate::workload::prelude::*;

thread_local! {
    /// Wakers must be `Send` and so cannot hold the arena; they are called where it is.
    static ARENA: RefCell<Option<Rc<Arena>>> = const { RefCell::new(None) };
}

/// The slots.
pub(crate) struct Arena {
    checker: Rc<Checker>,
    rng: RefCell<Rng>,
    waits: Waits,
    slots: RefCell<Vec<Slot>>,
    /// Slots from here on are left empty.
    limit: Cell<usize>,
    /// How many of our callbacks are on the stack.
    depth: Cell<u32>,
    /// Wakers that the library has not dropped yet.
    hooks: Cell<i64>,
}

/// Empty slots are filled again; busy ones have their timer on the stack.
enum Slot {
    Empty,
    Busy,
    Armed(Armed),
}

struct Armed {
    timer: Timer,
    key: Key,
    _live: Live,
}

impl Arena {
    /// With no slots yet.
    pub(super) fn start(checker: &Rc<Checker>, rng: Rng, waits: Waits) -> Rc<Self> {
        let arena = Rc::new(Arena {
            checker: Rc::clone(checker),
            rng: RefCell::new(rng),
            waits,
            slots: RefCell::default(),
            limit: Cell::new(0),
            depth: Cell::new(0),
            hooks: Cell::new(0),
        });
        ARENA.set(Some(Rc::clone(&arena)));
        arena
    }

    pub(super) fn count(&self) -> usize {
        self.limit.get()
    }

    /// Arms a timer in every slot that is new, or drops those beyond `count`, armed as they are.
    /// Not to be called from inside a callback.
    pub(super) fn resize(&self, count: usize) {
        self.limit.set(count);
        let before = self.slots.borrow().len();
        for index in count..before {
            if let Some(armed) = self.take(index) {
                self.slots.borrow_mut()[index] = Slot::Empty;
                self.checker.cancel(armed.key);
                drop(armed);
            }
        }
        self.slots.borrow_mut().resize_with(count, || Slot::Empty);
        if count == 0 {
            self.slots.borrow_mut().shrink_to_fit();
        }
        (before..count).for_each(|index| self.arm_if_empty(index));
    }

    /// Arms a timer in every empty slot.
    pub(super) fn refill(&self) {
        (0..self.count()).for_each(|index| self.arm_if_empty(index));
    }

    fn arm_if_empty(&self, index: usize) {
        let is_empty = matches!(self.slots.borrow().get(index), Some(Slot::Empty));
        if is_empty {
            self.arm(index);
        }
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

    fn arm(&self, index: usize) {
        if index >= self.limit.get() {
            return;
        }
        let delay = self.draw();
        let ticket = self.checker.arm(clock::now() + delay);
        let timer = Timer::new(ticket.delay());
        self.slots.borrow_mut()[index] = Slot::Busy;
        let (key, _live) = (ticket.key, ticket.live);
        self.poll(index, Armed { timer, key, _live });
    }

    /// Polls a timer that was taken out of its slot, and puts it back unless it has fired.
    fn poll(&self, index: usize, mut armed: Armed) {
        let waker = Waker::from(Hook::new(index, &self.hooks));
        let polled = Pin::new(&mut armed.timer).poll(&mut Context::from_waker(&waker));
        match polled {
            Poll::Pending => self.slots.borrow_mut()[index] = Slot::Armed(armed),
            Poll::Ready(scheduled) => {
                self.slots.borrow_mut()[index] = Slot::Empty;
                self.fired(index, armed, scheduled);
            }
        }
    }

    fn fired(&self, index: usize, armed: Armed, scheduled: Instant) {
        let early = nanos(scheduled.saturating_duration_since(clock::now()));
        let key = armed.key;
        self.checker.check(Invariant::NothingEarly, early, || {
            format!(
                "timer {} was ready {early} ns before the deadline it named",
                key.0
            )
        });
        self.checker.fired(key);
        drop(armed);
        self.inside_callback(|| {
            let pranks = self.rng.borrow_mut().u64(..3);
            for _ in 0..pranks {
                self.mischief();
            }
            self.arm_if_empty(index);
        });
    }

    /// Something wants this slot's timer polled: mostly its deadline, now and then a wake that was
    /// under way when the timer was reset, dropped or replaced.
    fn woken(&self, index: usize) {
        if let Some(armed) = self.take(index) {
            self.poll(index, armed);
        }
    }

    fn waker_dropped(&self) {
        let acts = self.rng.borrow_mut().chance(1, 4);
        if acts {
            self.inside_callback(|| self.mischief());
        }
    }

    /// Runs `act` unless callbacks are nested too deep already, or the run is ending.
    fn inside_callback(&self, act: impl FnOnce()) {
        if self.depth.get() >= DEPTH_MAX || self.checker.control.is_draining() {
            return;
        }
        self.depth.set(self.depth.get() + 1);
        act();
        self.depth.set(self.depth.get() - 1);
    }

    /// Does something to a random timer.
    fn mischief(&self) {
        // While the slots from the limit on are emptied there are more of them.
        let slots = self.limit.get().min(self.slots.borrow().len());
        if slots == 0 {
            return;
        }
        let (index, choice) = {
            let mut rng = self.rng.borrow_mut();
            (rng.usize(..slots), rng.u64(..100))
        };
        let Some(mut armed) = self.take(index) else {
            return;
        };
        match choice {
            // Its waker stays with it, so it need not be polled again.
            0..50 => {
                let deadline = clock::now() + self.draw();
                self.checker.rearm(armed.key, deadline);
                let delay = deadline.saturating_duration_since(clock::now());
                armed.timer.reset(delay);
                self.slots.borrow_mut()[index] = Slot::Armed(armed);
            }
            50..75 => {
                self.checker.cancel(armed.key);
                self.slots.borrow_mut()[index] = Slot::Empty;
                drop(armed);
            }
            // A new waker replaces the old one, whose destructor is one of ours.
            _ => self.poll(index, armed),
        }
    }

    fn draw(&self) -> Duration {
        let mut rng = self.rng.borrow_mut();
        self.waits.draw(&mut rng, self.limit.get())
    }

    /// `None`: nothing waits in this slot, or it is gone.
    fn take(&self, index: usize) -> Option<Armed> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(index)?;
        match std::mem::replace(slot, Slot::Busy) {
            Slot::Armed(armed) => Some(armed),
            other => {
                *slot = other;
                None
            }
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

const DEPTH_MAX: u32 = 4;
const _: () = assert!(DEPTH_MAX > 1, "callbacks inside callbacks are the point");
