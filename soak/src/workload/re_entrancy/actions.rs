//! `TimerActionOnce`s that destroy, re-arm, replace, detach and join each other when they fire, and
//! when their futures are dropped.
//!
//! A handle lies in a slot while a task may still act on it. What its `join` must answer is
//! known beforehand: the value, unless it was destroyed before its action had finished.

use super::cycle::Waits;
use super::slots::Slots;
use crate::workload::prelude::*;

pub(crate) struct Actions {
    pub(super) slots: Slots<Slot>,
    checker: Rc<Checker>,
    canaries_armed: Cell<u64>,
    canaries_fired: Cell<u64>,
}

pub(super) struct Slot {
    key: Key,
    handle: TimerActionOnce<u64>,
    fate: Rc<Fate>,
}

/// What is known of an action from outside the library.
#[derive(Default)]
struct Fate {
    is_finished: Cell<bool>,
    /// Destroyed before it had finished.
    is_destroyed: Cell<bool>,
}

impl Fate {
    fn destroyed(&self) {
        if !self.is_finished.get() {
            self.is_destroyed.set(true);
        }
    }
}

impl Actions {
    /// With no slots yet.
    pub(super) fn start(checker: &Rc<Checker>, rng: Rng, waits: Waits) -> Rc<Self> {
        Rc::new(Actions {
            slots: Slots::new(checker, rng, waits),
            checker: Rc::clone(checker),
            canaries_armed: Cell::new(0),
            canaries_fired: Cell::new(0),
        })
    }

    /// Arms an action in every slot that is new, or destroys what is in those beyond `count`. What
    /// was detached fires within its two seconds.
    pub(super) fn resize(self: &Rc<Self>, count: usize) {
        let new = self.slots.resize(count, |slot| self.destroy(&slot));
        new.for_each(|index| self.arm(index));
    }

    /// Arms an action in every empty slot.
    pub(super) fn refill(self: &Rc<Self>) {
        self.slots.empty().for_each(|index| self.arm(index));
    }

    /// After the run has settled: timers armed just before a stale cancellation have all fired.
    pub(crate) fn judge_canaries(&self) {
        let missing = self.canaries_armed.get() - self.canaries_fired.get();
        self.checker.check(Invariant::StaleCancels, missing, || {
            format!("{missing} timers armed beside a stale cancellation never fired")
        });
    }

    fn arm(self: &Rc<Self>, index: usize) {
        if index >= self.slots.count() {
            return;
        }
        let ticket = self.checker.arm(clock::now() + self.slots.draw());
        let suspends = {
            let mut rng = self.slots.rng.borrow_mut();
            let suspension = rng.uniform(Duration::ZERO, SUSPENSION_MAX);
            rng.chance(1, 8).then_some(suspension)
        };
        let key = ticket.key;
        let fate = Rc::new(Fate::default());
        let handle = TimerActionOnce::do_at(ticket.deadline, {
            let actions = Rc::clone(self);
            let fate = Rc::clone(&fate);
            let leaving = Leaving(Rc::clone(self));
            async move {
                let (_leaving, _live) = (leaving, ticket.live);
                if actions.checker.fired(key) {
                    actions.act(index, key);
                }
                if let Some(wait) = suspends {
                    // A sleep that is over before it is polled does not suspend.
                    yield_now().await;
                    sleep(wait).await;
                    let key = key.0;
                    actions.judge_answer(!fate.is_destroyed.get(), || {
                        format!("action {key} was destroyed and went on after its suspension")
                    });
                }
                fate.is_finished.set(true);
                key.0
            }
        });
        // A handle that was there is dropped, which cancels nothing.
        self.slots.put(index, Slot { key, handle, fate });
    }

    /// Runs inside a callback.
    fn act(self: &Rc<Self>, index: usize, key: Key) {
        if self.checker.control.is_draining() {
            return;
        }
        let pranks = self.slots.rng.borrow_mut().u64(..3);
        for _ in 0..pranks {
            self.mischief();
        }
        if self.slots.is_free(index, |slot| slot.key == key) {
            self.arm(index);
        }
    }

    /// Does something to a random action: often one that waits, sometimes one that has fired,
    /// sometimes the one that is running.
    fn mischief(self: &Rc<Self>) {
        let Some((index, choice)) = self.slots.mischief() else {
            return;
        };
        let Some(slot) = self.slots.take(index) else {
            return self.arm(index);
        };
        match choice {
            0..25 => {
                self.destroy(&slot);
                self.slots.put(index, slot);
            }
            25..55 => {
                self.rearm(&slot, self.slots.draw());
                self.slots.put(index, slot);
            }
            55..65 => {
                self.hasten(&slot);
                drop(slot);
            }
            65..80 => {
                self.destroy(&slot);
                drop(slot);
                self.arm(index);
            }
            80..90 => self.cancel(slot),
            _ => {
                self.hasten(&slot);
                self.join(slot);
            }
        }
    }

    fn destroy(self: &Rc<Self>, slot: &Slot) {
        if !self.checker.cancel(slot.key) {
            self.arm_canary();
        }
        slot.fate.destroyed();
        slot.handle.destroy();
    }

    /// What cannot be reached any more must not wait for long.
    fn hasten(self: &Rc<Self>, slot: &Slot) {
        let mut rng = self.slots.rng.borrow_mut();
        let delay = self.slots.waits.draw_short(&mut rng);
        drop(rng);
        self.rearm(slot, delay);
    }

    fn rearm(self: &Rc<Self>, slot: &Slot, delay: Duration) {
        let deadline = clock::now() + delay;
        if !self.checker.rearm(slot.key, deadline) {
            self.arm_canary();
        }
        slot.handle.rearm_at(deadline);
    }

    fn cancel(self: &Rc<Self>, slot: Slot) {
        self.checker.cancel(slot.key);
        slot.fate.destroyed();
        let actions = Rc::clone(self);
        spawn_local(async move {
            let Slot { key, handle, fate } = slot;
            handle.cancel().await;
            // Whether it ended or was dropped, the action's future is gone: ours is the last hold.
            actions.judge_answer(Rc::strong_count(&fate) == 1, || {
                format!("action {} was still alive after its cancellation", key.0)
            });
        })
        .detach();
    }

    fn join(self: &Rc<Self>, slot: Slot) {
        let actions = Rc::clone(self);
        spawn_local(async move {
            let Slot { key, handle, fate } = slot;
            let joined = handle.join().await;
            let expected = (!fate.is_destroyed.get()).then_some(key.0);
            actions.judge_answer(joined == expected, || {
                let key = key.0;
                format!("action {key} joined with {joined:?} instead of {expected:?}")
            });
        })
        .detach();
    }

    /// A timer armed just before a cancellation or re-arming that comes too late: it likely takes
    /// the place of the timer that has fired, and is the one that a mistaken handle would hit.
    fn arm_canary(self: &Rc<Self>) {
        let ahead = (self.slots.rng.borrow_mut()).uniform(Duration::ZERO, CANARY_MAX);
        let ticket = self.checker.arm(clock::now() + ahead);
        self.canaries_armed.set(self.canaries_armed.get() + 1);
        let actions = Rc::clone(self);
        let handle = TimerActionOnce::do_at(ticket.deadline, async move {
            let _live = ticket.live;
            if actions.checker.fired(ticket.key) {
                actions.canaries_fired.set(actions.canaries_fired.get() + 1);
                actions.checker.passed(Invariant::StaleCancels);
            }
        });
        // It fires all the same.
        drop(handle);
    }

    /// Runs inside the destructor of a future: that of an action which has ended, or was destroyed.
    fn future_dropped(self: &Rc<Self>) {
        let acts = self.slots.rng.borrow_mut().chance(1, 4);
        if acts {
            self.slots.inside_callback(|| self.mischief());
        }
    }

    fn judge_answer(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.checker.holds(Invariant::CancelsHold, holds, detail);
    }
}

/// Goes with an action's future.
struct Leaving(Rc<Actions>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.future_dropped();
    }
}

const SUSPENSION_MAX: Duration = Duration::from_millis(5);
const CANARY_MAX: Duration = Duration::from_millis(50);
