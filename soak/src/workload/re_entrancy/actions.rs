//! `TimerActionOnce`s that destroy, re-arm, replace, detach and join each other when they fire.
//!
//! A handle lies in a slot while anybody may still do something to it. What its `join` must answer is
//! known beforehand: the value, unless it was destroyed before its action had finished.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::spawn_local;
use glommio::timer::{TimerActionOnce, sleep};

use super::delay;
use crate::invariants::Invariant;
use crate::model::Key;
use crate::rng::Rng;
use crate::watch::Watch;

/// The slots.
pub(crate) struct Actions {
    watch: Rc<Watch>,
    rng: RefCell<Rng>,
    slots: RefCell<Vec<Option<Slot>>>,
    canaries_armed: Cell<u64>,
    canaries_fired: Cell<u64>,
}

struct Slot {
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
    pub(crate) fn start(watch: &Rc<Watch>, rng: Rng, count: usize) -> Rc<Self> {
        let actions = Rc::new(Actions {
            watch: Rc::clone(watch),
            rng: RefCell::new(rng),
            slots: RefCell::new((0..count).map(|_| None).collect()),
            canaries_armed: Cell::new(0),
            canaries_fired: Cell::new(0),
        });
        actions.refill();
        actions
    }

    /// Arms an action in every empty slot.
    pub(crate) fn refill(self: &Rc<Self>) {
        let slots = self.slots.borrow().len();
        for index in 0..slots {
            let is_empty = self.slots.borrow()[index].is_none();
            if is_empty {
                self.arm(index);
            }
        }
    }

    /// Destroys everything that is within reach; what was detached fires within its two seconds.
    pub(crate) fn cancel_all(self: &Rc<Self>) {
        let slots = self.slots.borrow().len();
        for index in 0..slots {
            let slot = self.slots.borrow_mut()[index].take();
            if let Some(slot) = slot {
                self.destroy(&slot);
            }
        }
    }

    /// After the run has settled: timers armed just before a stale cancellation have all fired.
    pub(crate) fn judge_canaries(&self) {
        let missing = self.canaries_armed.get() - self.canaries_fired.get();
        self.watch
            .station
            .ledger
            .check(Invariant::StaleCancels, missing, || {
                format!("{missing} timers armed beside a stale cancellation never fired")
            });
    }

    fn arm(self: &Rc<Self>, index: usize) {
        let (delay, suspends) = {
            let mut rng = self.rng.borrow_mut();
            let delay = delay(&mut rng);
            let suspends = rng
                .chance(1, 8)
                .then(|| rng.uniform(Duration::ZERO, Duration::from_millis(5)));
            (delay, suspends)
        };
        let ticket = self.watch.arm(Instant::now() + delay);
        let key = ticket.key;
        let fate = Rc::new(Fate::default());
        let handle = TimerActionOnce::do_at(ticket.deadline, {
            let actions = Rc::clone(self);
            let fate = Rc::clone(&fate);
            async move {
                let _live = ticket.live;
                if actions.watch.fired(key) {
                    actions.act(index, key);
                }
                if let Some(wait) = suspends {
                    sleep(wait).await;
                    actions.judge_answer(!fate.is_destroyed.get(), || {
                        format!(
                            "action {} was destroyed and went on after its suspension",
                            key.0
                        )
                    });
                }
                fate.is_finished.set(true);
                key.0
            }
        });
        // A handle that was there is dropped, which cancels nothing.
        let before = self.slots.borrow_mut()[index].replace(Slot { key, handle, fate });
        drop(before);
    }

    /// Runs inside a callback.
    fn act(self: &Rc<Self>, index: usize, key: Key) {
        if self.watch.control.is_draining() {
            return;
        }
        let pranks = self.rng.borrow_mut().below(3);
        for _ in 0..pranks {
            self.mischief();
        }
        let is_ours = self.slots.borrow()[index]
            .as_ref()
            .is_none_or(|slot| slot.key == key);
        if is_ours {
            self.arm(index);
        }
    }

    /// Does something to a random action: often one that waits, sometimes one that has fired,
    /// sometimes the one that is running.
    fn mischief(self: &Rc<Self>) {
        let (index, choice) = {
            let mut rng = self.rng.borrow_mut();
            (rng.index(self.slots.borrow().len()), rng.below(100))
        };
        let Some(slot) = self.slots.borrow_mut()[index].take() else {
            return self.arm(index);
        };
        match choice {
            0..25 => {
                self.destroy(&slot);
                self.put_back(index, slot);
            }
            25..55 => {
                self.rearm(&slot);
                self.put_back(index, slot);
            }
            55..65 => drop(slot),
            65..80 => {
                self.destroy(&slot);
                drop(slot);
                self.arm(index);
            }
            80..90 => self.cancel(slot),
            _ => self.join(slot),
        }
    }

    fn put_back(&self, index: usize, slot: Slot) {
        self.slots.borrow_mut()[index] = Some(slot);
    }

    fn destroy(self: &Rc<Self>, slot: &Slot) {
        if !self.watch.cancel(slot.key) {
            self.arm_canary();
        }
        slot.fate.destroyed();
        slot.handle.destroy();
    }

    fn rearm(self: &Rc<Self>, slot: &Slot) {
        let deadline = Instant::now() + delay(&mut self.rng.borrow_mut());
        let told = self.watch.rearm(slot.key, deadline);
        if told.is_none() {
            self.arm_canary();
        }
        slot.handle.rearm_at(told.unwrap_or(deadline));
    }

    fn cancel(self: &Rc<Self>, slot: Slot) {
        self.watch.cancel(slot.key);
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
                format!(
                    "action {} joined with {joined:?} instead of {expected:?}",
                    key.0
                )
            });
        })
        .detach();
    }

    /// A timer armed just before a cancellation or re-arming that comes too late: it likely takes
    /// the place of the timer that has fired, and is the one that a mistaken handle would hit.
    fn arm_canary(self: &Rc<Self>) {
        let deadline = Instant::now() + self.rng.borrow_mut().uniform(Duration::ZERO, CANARY_MAX);
        let ticket = self.watch.arm(deadline);
        self.canaries_armed.set(self.canaries_armed.get() + 1);
        let actions = Rc::clone(self);
        let handle = TimerActionOnce::do_at(ticket.deadline, async move {
            let _live = ticket.live;
            if actions.watch.fired(ticket.key) {
                actions.canaries_fired.set(actions.canaries_fired.get() + 1);
                actions.watch.station.ledger.passed(Invariant::StaleCancels);
            }
        });
        // It fires all the same.
        drop(handle);
    }

    fn judge_answer(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.watch
            .station
            .ledger
            .holds(Invariant::CancelsHold, holds, detail);
    }
}

const CANARY_MAX: Duration = Duration::from_millis(50);
