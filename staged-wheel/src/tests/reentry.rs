//! Payloads that come back to the queue when they fire and when they are dropped.
//!
//! The queue lies in a `RefCell`, as the reactor has it: were it to run or drop a payload itself,
//! the second borrow would panic.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::classic::{ClassicHandle, ClassicQueue};
use crate::wheel::{StagedWheel, TimerHandle};

/// What a wake is allowed to fire at once.
const BUDGET: usize = 8;
const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// Code that runs once when its timer fires, and code that runs once when it is dropped.
struct Hook {
    on_wake: Option<Box<dyn FnOnce()>>,
    on_drop: Option<Box<dyn FnOnce()>>,
}

impl Hook {
    fn new(on_wake: impl FnOnce() + 'static, on_drop: impl FnOnce() + 'static) -> Hook {
        Hook {
            on_wake: Some(Box::new(on_wake)),
            on_drop: Some(Box::new(on_drop)),
        }
    }

    fn idle() -> Hook {
        Hook::new(|| (), || ())
    }

    fn on_wake(on_wake: impl FnOnce() + 'static) -> Hook {
        Hook::new(on_wake, || ())
    }

    fn on_drop(on_drop: impl FnOnce() + 'static) -> Hook {
        Hook::new(|| (), on_drop)
    }

    fn wake(mut self) {
        if let Some(on_wake) = self.on_wake.take() {
            on_wake();
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

/// A queue of any kind, its timers by number of the arm.
trait Timers {
    fn arm(&mut self, deadline: Instant, hook: Hook) -> usize;
    fn cancel(&mut self, timer: usize) -> Option<Hook>;
    fn rearm(&mut self, timer: usize, deadline: Instant) -> bool;
    fn replace(&mut self, timer: usize, hook: Hook) -> Option<Hook>;
    fn expire(&mut self, now: Instant, expired: &mut Vec<Hook>) -> bool;
    fn len(&self) -> usize;
    fn check(&self);
}

macro_rules! timers {
    ($queue:ident, $handle:ident) => {
        impl Timers for ($queue<Hook>, Vec<$handle>) {
            fn arm(&mut self, deadline: Instant, hook: Hook) -> usize {
                self.1.push(self.0.insert(deadline, hook));
                self.1.len() - 1
            }
            fn cancel(&mut self, timer: usize) -> Option<Hook> {
                self.0.cancel(self.1[timer])
            }
            fn rearm(&mut self, timer: usize, deadline: Instant) -> bool {
                self.0.rearm(self.1[timer], deadline)
            }
            fn replace(&mut self, timer: usize, hook: Hook) -> Option<Hook> {
                let known = self.0.get_mut(self.1[timer])?;
                Some(std::mem::replace(known, hook))
            }
            fn expire(&mut self, now: Instant, expired: &mut Vec<Hook>) -> bool {
                self.0.expire(now, BUDGET, expired)
            }
            fn len(&self) -> usize {
                self.0.len()
            }
            fn check(&self) {
                self.0.check_invariants();
            }
        }
    };
}

timers!(ClassicQueue, ClassicHandle);
timers!(StagedWheel, TimerHandle);

/// The queue as its hooks see it, and what they tell.
#[derive(Clone)]
struct Fixture(Rc<Shared>);

struct Shared {
    epoch: Instant,
    timers: RefCell<Box<dyn Timers>>,
    log: RefCell<Vec<usize>>,
    /// Timers for never that make a burst.
    burst: usize,
}

impl Fixture {
    fn at(&self, ns: u64) -> Instant {
        self.0.epoch + Duration::from_nanos(ns)
    }

    fn arm(&self, ns: u64, hook: Hook) -> usize {
        self.0.timers.borrow_mut().arm(self.at(ns), hook)
    }

    /// Cancels the timer, then drops its hook. Was it armed?
    fn cancel(&self, timer: usize) -> bool {
        let hook = self.0.timers.borrow_mut().cancel(timer);
        hook.is_some()
    }

    fn rearm(&self, timer: usize, ns: u64) -> bool {
        self.0.timers.borrow_mut().rearm(timer, self.at(ns))
    }

    /// Gives the timer another hook, then drops the old one.
    fn replace(&self, timer: usize, hook: Hook) -> bool {
        let old = self.0.timers.borrow_mut().replace(timer, hook);
        old.is_some()
    }

    fn note(&self, n: usize) {
        self.0.log.borrow_mut().push(n);
    }

    fn take_log(&self) -> Vec<usize> {
        self.0.log.take()
    }

    fn len(&self) -> usize {
        self.0.timers.borrow().len() - self.0.burst
    }

    /// One poll: takes out what is due, then wakes it. Panics go no further. Is more due?
    fn poll(&self, now_ns: u64) -> bool {
        let mut expired = Vec::new();
        let now = self.at(now_ns);
        let has_more = self.0.timers.borrow_mut().expire(now, &mut expired);
        self.0.timers.borrow().check();
        for hook in expired {
            // The harness reports it; the others are to be woken all the same.
            let _ = catch_unwind(AssertUnwindSafe(|| hook.wake()));
            self.0.timers.borrow().check();
        }
        has_more
    }

    fn poll_all(&self, now_ns: u64) {
        while self.poll(now_ns) {}
    }
}

/// Runs a law with each queue, alone and beside four hundred timers that never fire.
fn in_every_queue(law: fn(Fixture)) {
    let epoch = Instant::now();
    for burst in [0, 400] {
        let queues: [Box<dyn Timers>; 3] = [
            Box::new((ClassicQueue::new(epoch), Vec::new())),
            Box::new((StagedWheel::with_inline_max(epoch, 0), Vec::new())),
            Box::new((StagedWheel::new(epoch), Vec::new())),
        ];
        for timers in queues {
            let fixture = Fixture(Rc::new(Shared {
                epoch,
                timers: RefCell::new(timers),
                log: RefCell::default(),
                burst,
            }));
            for _ in 0..burst {
                fixture.arm(u64::MAX, Hook::idle());
            }
            law(fixture);
        }
    }
}

#[test]
fn a_wake_that_arms_fires_what_it_armed_in_order() {
    in_every_queue(|fixture| {
        for n in 0..20 {
            let inner = fixture.clone();
            let hook = Hook::on_wake(move || {
                inner.note(n);
                for (ns, m) in [(2 * SECOND, 200), (SECOND, 100), (0, 0)] {
                    let told = inner.clone();
                    inner.arm(ns, Hook::on_wake(move || told.note(m + n)));
                }
            });
            fixture.arm(SECOND, hook);
        }
        fixture.poll(SECOND);
        assert_eq!(fixture.take_log(), (0..8).collect::<Vec<_>>());
        // What the first eight armed for the past goes before the twelve that are left.
        fixture.poll(SECOND);
        assert_eq!(fixture.take_log(), (0..8).collect::<Vec<_>>());
        fixture.poll_all(2 * SECOND);
        let log = fixture.take_log();
        assert_eq!(log.len(), 12 + 12 + 20 + 20);
        assert!(log[44..].iter().copied().eq(200..220));
        assert_eq!(fixture.len(), 0);
    });
}

/// The timer itself and those of the same batch are gone; those of the next batch are not.
#[test]
fn a_wake_that_cancels_itself_and_later_ones() {
    in_every_queue(|fixture| {
        let timers: Rc<RefCell<Vec<usize>>> = Rc::default();
        for n in 0..2 * BUDGET {
            let (inner, known, dropped) = (fixture.clone(), Rc::clone(&timers), fixture.clone());
            let on_wake = move || {
                inner.note(n);
                let timers = known.borrow();
                assert!(!inner.cancel(timers[n]), "it fires, so it is not there");
                assert!(!inner.rearm(timers[n], HOUR));
                if n + 1 < BUDGET {
                    assert!(!inner.cancel(timers[n + 1]), "it is in the batch");
                }
                if n < BUDGET && n % 2 == 0 {
                    assert!(inner.cancel(timers[n + BUDGET]), "its turn is the next");
                }
            };
            let hook = Hook::new(on_wake, move || dropped.note(100 + n));
            timers.borrow_mut().push(fixture.arm(SECOND, hook));
        }
        assert!(fixture.poll(SECOND));
        let expected: Vec<usize> = (0..BUDGET)
            .flat_map(|n| match n % 2 {
                // The cancelled one is dropped on the spot, before the one that fires is.
                0 => vec![n, 100 + n + BUDGET, 100 + n],
                _ => vec![n, 100 + n],
            })
            .collect();
        assert_eq!(fixture.take_log(), expected);
        assert!(!fixture.poll(SECOND));
        let expected: Vec<usize> = (BUDGET..2 * BUDGET)
            .filter(|n| n % 2 == 1)
            .flat_map(|n| [n, 100 + n])
            .collect();
        assert_eq!(fixture.take_log(), expected);
        assert_eq!(fixture.len(), 0);
    });
}

/// What the budget left behind is moved to the front, to the back and out of the poll.
#[test]
fn a_wake_that_moves_what_the_budget_left_behind() {
    in_every_queue(|fixture| {
        let mut timers: Vec<usize> = (1..=9)
            .map(|n| {
                let told = fixture.clone();
                fixture.arm(SECOND, Hook::on_wake(move || told.note(n)))
            })
            .collect();
        timers.extend((10..=15).map(|n| {
            let told = fixture.clone();
            fixture.arm(SECOND + 1, Hook::on_wake(move || told.note(n)))
        }));
        let mover = fixture.clone();
        let hook = Hook::on_wake(move || {
            assert!(!mover.rearm(timers[0], 0), "it is in the batch");
            assert!(mover.rearm(timers[8], SECOND + 1));
            assert!(mover.rearm(timers[11], 5));
            assert!(mover.rearm(timers[12], HOUR));
        });
        fixture.arm(0, hook);
        assert!(fixture.poll(SECOND + 1));
        assert_eq!(fixture.take_log(), [1, 2, 3, 4, 5, 6, 7]);
        fixture.poll_all(SECOND + 1);
        assert_eq!(fixture.take_log(), [12, 8, 10, 11, 14, 15, 9]);
        fixture.poll_all(HOUR);
        assert_eq!(fixture.take_log(), [13]);
    });
}

/// Nothing is left, the queue starts over, and a burst comes: all of it while one batch is woken.
#[test]
fn a_wake_that_empties_the_queue_and_fills_it_again() {
    in_every_queue(|fixture| {
        let burst = fixture.0.burst;
        let inner = fixture.clone();
        fixture.arm(
            SECOND,
            Hook::on_wake(move || {
                for timer in 0..burst + 31 {
                    inner.cancel(timer);
                }
                assert_eq!(inner.0.timers.borrow().len(), 0);
                for n in 0..300 {
                    let told = inner.clone();
                    inner.arm(SECOND + 300 - n as u64, Hook::on_wake(move || told.note(n)));
                }
            }),
        );
        for n in 0..30 {
            let told = fixture.clone();
            fixture.arm(SECOND, Hook::on_wake(move || told.note(1000 + n)));
        }
        assert!(fixture.poll(SECOND));
        // The batch is out of the queue and is woken all the same.
        assert_eq!(fixture.take_log(), (1000..1007).collect::<Vec<_>>());
        fixture.poll_all(SECOND + 150);
        assert_eq!(fixture.take_log(), (150..300).rev().collect::<Vec<_>>());
        fixture.poll_all(2 * SECOND);
        assert_eq!(fixture.take_log(), (0..150).rev().collect::<Vec<_>>());
        assert_eq!(fixture.0.timers.borrow().len(), 0);
    });
}

/// Each destructor cancels a timer, whose destructor does the same, and arms and moves others.
#[test]
fn a_drop_that_cancels_arms_and_moves() {
    in_every_queue(|fixture| {
        let moved = fixture.arm(HOUR, Hook::idle());
        let mut last = fixture.arm(HOUR, Hook::idle());
        for n in 0..100 {
            let (inner, next) = (fixture.clone(), last);
            let hook = Hook::on_drop(move || {
                inner.note(n);
                assert!(inner.cancel(next));
                let told = inner.clone();
                inner.arm(SECOND, Hook::on_wake(move || told.note(1000 + n)));
                assert!(inner.rearm(moved, HOUR + n as u64));
            });
            last = match n % 3 {
                0 => fixture.arm(2 * SECOND, hook),
                // By way of another hook's place: the old one goes, the new one stays.
                1 => {
                    let timer = fixture.arm(2 * SECOND, Hook::idle());
                    assert!(fixture.replace(timer, hook));
                    timer
                }
                _ => fixture.arm(HOUR * 24 * 365, hook),
            };
        }
        assert!(fixture.cancel(last));
        assert_eq!(fixture.take_log(), (0..100).rev().collect::<Vec<_>>());
        // The innermost destructor comes to its arm first.
        fixture.poll_all(SECOND);
        assert_eq!(fixture.take_log(), (1000..1100).collect::<Vec<_>>());
        assert_eq!(fixture.len(), 1);
    });
}

/// A replaced hook's destructor finds the new one in place.
#[test]
fn a_drop_of_a_replaced_payload_meets_the_new_one() {
    in_every_queue(|fixture| {
        let timer = fixture.arm(SECOND, Hook::idle());
        let (inner, told) = (fixture.clone(), fixture.clone());
        assert!(fixture.replace(timer, Hook::on_drop(move || assert!(inner.cancel(timer)))));
        assert!(fixture.replace(timer, Hook::on_drop(move || told.note(7))));
        assert_eq!(fixture.take_log(), [7]);
        assert!(!fixture.replace(timer, Hook::idle()));
        fixture.poll_all(SECOND);
        assert_eq!(fixture.len(), 0);
    });
}

/// Neither a panic in a wake nor one in a destructor loses another timer.
#[test]
fn a_panic_loses_no_other_timer() {
    in_every_queue(|fixture| {
        for n in 0..40 {
            let told = fixture.clone();
            let on_wake = move || {
                told.note(n);
                assert!(n % 4 != 1, "on purpose");
            };
            let on_drop = move || assert!(n % 4 != 2, "on purpose");
            fixture.arm(SECOND, Hook::new(on_wake, on_drop));
        }
        fixture.poll_all(SECOND);
        assert_eq!(fixture.take_log(), (0..40).collect::<Vec<_>>());

        let bad = fixture.arm(SECOND, Hook::on_drop(|| panic!("on purpose")));
        let told = fixture.clone();
        fixture.arm(SECOND, Hook::on_wake(move || told.note(7)));
        let cancelled = catch_unwind(AssertUnwindSafe(|| fixture.cancel(bad)));
        assert!(cancelled.is_err(), "the canceller's own business");
        assert!(!fixture.cancel(bad));
        fixture.poll_all(SECOND);
        assert_eq!(fixture.take_log(), [7]);
        assert_eq!(fixture.len(), 0);
    });
}
