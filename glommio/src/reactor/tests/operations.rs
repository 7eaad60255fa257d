//! Operations from their submission to their end, whichever it is.

use std::cell::{Cell, RefCell};

use super::*;

#[test]
fn giving_up_what_was_not_submitted_costs_nothing() {
    let reactor = reactor(16);
    let quiet = eventfd();
    let kept: Vec<_> = (0..7).map(|_| reactor.submit(readable(&quiet))).collect();
    drop(kept);
    // However many there were: operations that are gone are no batch.
    (0..100).for_each(|_| drop(reactor.submit(readable(&quiet))));
    assert_eq!(reactor.in_flight().len(), 0);
    assert!(!reactor.in_flight().has_cancels());
    flush(&reactor);
    assert_eq!(reactor.ring().queued(), 0, "the kernel hears nothing of it");
    assert!(!reactor.in_flight().has_backlog());
}

#[test]
fn half_a_ring_of_operations_reaches_the_kernel_at_once_and_wakes_no_task() {
    for depth in [1, 2, 8, 64] {
        let reactor = reactor(depth);
        let half = (depth / 2).max(1);
        let (woken, waker) = counting_waker();
        let mut operations: Vec<_> = (1..half).map(|_| reactor.submit(Nop)).collect();
        assert!(!reactor.ring().completions_posted(), "they are fewer");
        operations.push(reactor.submit(Nop));
        // These complete as they are submitted.
        assert!(reactor.ring().completions_posted());
        assert!(!reactor.in_flight().has_backlog());
        for operation in &mut operations {
            assert!(poll(operation, &waker).is_none(), "not from there");
        }
        operations.extend((0..10 * half).map(|_| reactor.submit(Nop)));
        assert!(!reactor.in_flight().has_backlog());
        turn_until(&reactor, || {
            let in_flight = reactor.in_flight();
            in_flight
                .keys()
                .iter()
                .all(|key| in_flight.is_completed(*key))
        });
        assert_eq!(woken.get(), half);
        for operation in &mut operations {
            assert!(poll(operation, &waker).is_some());
        }
    }
}

#[test]
fn a_key_is_never_that_of_the_next_tenant_of_its_slot() {
    let reactor = reactor(4);
    let (_, waker) = counting_waker();
    let mut keys = Vec::new();
    for _ in 0..100 {
        let mut operation = reactor.submit(Nop);
        let key = reactor.in_flight().keys()[0];
        assert!(!keys.contains(&key));
        assert_eq!(key.index, 0, "the slot is the same");
        keys.push(key);
        // A key that is out of date names nothing.
        for old in &keys[..keys.len() - 1] {
            let given_up = reactor.driver.in_flight.borrow_mut().abandon(*old);
            assert!(given_up.is_nothing());
        }
        assert!(poll(&mut operation, &waker).is_none());
        turn_until(&reactor, || reactor.in_flight().is_completed(key));
        assert!(poll(&mut operation, &waker).is_some());
    }
}

#[test]
fn keys_and_user_data_are_the_same_thing() {
    for key in [
        OpKey {
            index: 0,
            generation: 1,
        },
        OpKey {
            index: u32::MAX,
            generation: u32::MAX,
        },
        OpKey {
            index: 7,
            generation: 1 << 31,
        },
    ] {
        assert_eq!(OpKey::from_user_data(key.user_data()), key);
        assert!(![IGNORED, PREEMPTION, WAKE_UP, SLEEP_TIMEOUT].contains(&key.user_data()));
    }
}

/// Notes what it is told.
#[derive(Default)]
struct Notes(RefCell<Vec<i32>>);

impl Sink for Notes {
    type Item = io::Result<u32>;

    fn complete(&self, result: io::Result<u32>, has_more: bool) {
        assert!(!has_more);
        self.0.borrow_mut().push(raw(&result));
    }
}

#[test]
fn a_sink_hears_of_what_was_given_up_after_its_submission_and_of_nothing_else() {
    let reactor = reactor(4);
    let (quiet, notes) = (eventfd(), Rc::new(Notes::default()));
    drop(reactor.submit_to(readable(&quiet), notes.clone()));
    assert_eq!(Rc::strong_count(&notes), 1, "forgotten at once");
    turn(&reactor);
    assert!(notes.0.borrow().is_empty());
    let guard = reactor.submit_to(readable(&quiet), notes.clone());
    turn(&reactor);
    drop(guard);
    turn_until(&reactor, || !notes.0.borrow().is_empty());
    assert_eq!(*notes.0.borrow(), [-libc::ECANCELED]);
    // Given up when it has succeeded already: the sink has the result to care for.
    let guard = reactor.submit_to(readable(&quiet), notes.clone());
    turn(&reactor);
    quiet.write(1).expect("an eventfd takes a small number");
    drop(guard);
    turn_until(&reactor, || notes.0.borrow().len() == 2);
    assert!(notes.0.borrow()[1] > 0 || notes.0.borrow()[1] == -libc::ECANCELED);
}

#[expect(dead_code, reason = "held for their destructors")]
enum Held {
    Nop(OpHandle<Nop>),
    Poll(OpHandle<PollOnce>),
}

/// Comes back to the reactor with all that it does.
struct Reenters {
    reactor: Rc<Reactor>,
    held: RefCell<Option<Held>>,
    drops: Rc<Cell<usize>>,
}

impl Sink for Reenters {
    type Item = io::Result<u32>;

    fn complete(&self, _result: io::Result<u32>, _has_more: bool) {
        let next = self.reactor.submit(Nop);
        drop(self.held.replace(Some(Held::Nop(next))));
        self.reactor.need_preempt();
    }
}

impl Drop for Reenters {
    fn drop(&mut self) {
        drop(self.held.take());
        drop(self.reactor.submit(Nop));
        self.drops.set(self.drops.get() + 1);
    }
}

#[test]
fn sinks_may_come_back_to_the_reactor_also_when_they_are_dropped() {
    let reactor = reactor(64);
    let (quiet, drops) = (eventfd(), Rc::new(Cell::new(0)));
    let sink = || {
        Rc::new(Reenters {
            reactor: Rc::clone(&reactor),
            held: RefCell::new(Some(Held::Poll(reactor.submit(readable(&quiet))))),
            drops: Rc::clone(&drops),
        })
    };
    // Given up before the submission, after it, and not at all.
    drop(reactor.submit_to(Nop, sink()));
    assert_eq!(drops.get(), 1);
    let guard = reactor.submit_to(readable(&quiet), sink());
    turn(&reactor);
    drop(guard);
    turn_until(&reactor, || drops.get() == 2);
    let guard = reactor.submit_to(Nop, sink());
    turn_until(&reactor, || drops.get() == 3);
    drop(guard);
    shut_down(&reactor);
}

#[test]
fn the_end_cancels_and_waits_for_everything() {
    for depth in [1, 2, 64] {
        let reactor = reactor(depth);
        let (quiet, notes) = (eventfd(), Rc::new(Notes::default()));
        let (woken, waker) = counting_waker();
        let mut waiting: Vec<_> = (0..100).map(|_| reactor.submit(readable(&quiet))).collect();
        let sunk: Vec<_> = (0..100)
            .map(|_| reactor.submit_to(readable(&quiet), notes.clone()))
            .collect();
        for operation in &mut waiting {
            assert!(poll(operation, &waker).is_none());
        }
        turn(&reactor);
        let late: Vec<_> = (0..100).map(|_| reactor.submit(readable(&quiet))).collect();
        shut_down(&reactor);
        assert_eq!(woken.get(), 0);
        assert_eq!(*notes.0.borrow(), [-libc::ECANCELED; 100]);
        // Nothing is taken on any more, and handles are harmless.
        let mut after = reactor.submit(Nop);
        assert!(poll(&mut after, &waker).expect("refused").is_err());
        assert_eq!(reactor.in_flight().len(), 0);
        drop((sunk, late));
        drop(reactor);
        let gone = poll(&mut waiting[0], &waker).expect("there is no reactor");
        assert_eq!(gone.unwrap_err().kind(), std::io::ErrorKind::NotConnected);
    }
}
