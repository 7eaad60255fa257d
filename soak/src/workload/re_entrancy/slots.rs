//! Slots with timers that are done something to while others run.

use super::cycle::Waits;
use crate::workload::prelude::*;

/// Slots of timers. One is taken out before anything is done to it, so that whatever runs inside finds its slot empty and
/// leaves it alone. No borrow is held across a call into the library.
pub(super) struct Slots<T> {
    checker: Rc<Checker>,
    pub(super) rng: RefCell<Rng>,
    pub(super) waits: Waits,
    slots: RefCell<Vec<Option<T>>>,
    /// Slots from here on are left empty.
    limit: Cell<usize>,
    /// How many of our callbacks are on the stack.
    depth: Cell<u32>,
}

impl<T> Slots<T> {
    /// None yet.
    pub(super) fn new(checker: &Rc<Checker>, rng: Rng, waits: Waits) -> Self {
        Slots {
            checker: Rc::clone(checker),
            rng: RefCell::new(rng),
            waits,
            slots: RefCell::default(),
            limit: Cell::new(0),
            depth: Cell::new(0),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.limit.get()
    }

    /// Makes slots, or does `end` to what is in those beyond `count`. Those that are new are to be filled. Not to be called
    /// from inside a callback.
    pub(super) fn resize(&self, count: usize, end: impl Fn(T)) -> std::ops::Range<usize> {
        self.limit.set(count);
        let before = self.slots.borrow().len();
        for index in count..before {
            if let Some(timer) = self.take(index) {
                end(timer);
            }
        }
        let mut slots = self.slots.borrow_mut();
        slots.resize_with(count, || None);
        if count == 0 {
            slots.shrink_to_fit();
        }
        before..count
    }

    /// Those that are empty.
    pub(super) fn empty(&self) -> impl Iterator<Item = usize> {
        (0..self.count()).filter(|&index| self.is_free(index, |_| false))
    }

    /// Whether the slot is there, and empty or with one that `is_it`.
    pub(super) fn is_free(&self, index: usize, is_it: impl FnOnce(&T) -> bool) -> bool {
        let slots = self.slots.borrow();
        let slot = slots.get(index).filter(|_| index < self.count());
        slot.is_some_and(|slot| slot.as_ref().is_none_or(is_it))
    }

    /// `None`: there is no timer in this slot, or no slot.
    pub(super) fn take(&self, index: usize) -> Option<T> {
        self.slots.borrow_mut().get_mut(index)?.take()
    }

    pub(super) fn put(&self, index: usize, timer: T) {
        let before = self.slots.borrow_mut()[index].replace(timer);
        drop(before);
    }

    /// How long a timer waits.
    pub(super) fn draw(&self) -> Duration {
        self.waits.draw(&mut self.rng.borrow_mut(), self.count())
    }

    /// A slot, and what to do to its timer, of a hundred things. `None`: there are no slots.
    pub(super) fn mischief(&self) -> Option<(usize, u64)> {
        // While the slots from the limit on are emptied there are more of them.
        let slots = self.count().min(self.slots.borrow().len());
        let mut rng = self.rng.borrow_mut();
        (slots > 0).then(|| (rng.usize(..slots), rng.u64(..100)))
    }

    /// Runs `act` unless callbacks are nested too deep already, or the run is ending.
    pub(super) fn inside_callback(&self, act: impl FnOnce()) {
        if self.depth.get() < DEPTH_MAX && !self.checker.control.is_draining() {
            self.depth.set(self.depth.get() + 1);
            act();
            self.depth.set(self.depth.get() - 1);
        }
    }
}

const DEPTH_MAX: u32 = 4;
const _: () = assert!(DEPTH_MAX > 1, "callbacks inside callbacks are the point");
