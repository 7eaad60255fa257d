//! Wakers and sinks that reap in their turn, or panic, while completions are delivered.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};

use super::op::FromOutcome;
use super::*;
use crate::panic::tests::HostileLog;
use crate::reactor::preempt::MIN_SLICE;

/// Calls a function at each completion, as sinks call wakers.
struct Calls<T, F>(F, PhantomData<T>);

impl<T: FromOutcome + 'static, F: Fn(T, bool) + 'static> Sink for Calls<T, F> {
    type Item = T;

    fn complete(&self, item: T, has_more: bool) {
        (self.0)(item, has_more);
    }
}

fn calls<T, F: Fn(T, bool)>(f: F) -> Rc<Calls<T, F>> {
    Rc::new(Calls(f, PhantomData))
}

/// What happened, in order.
#[derive(Clone, Default)]
struct Notes(Rc<RefCell<Vec<&'static str>>>);

impl Notes {
    fn note(&self, what: &'static str) {
        self.0.borrow_mut().push(what);
    }

    /// Starts an operation that completes at once and is noted.
    fn start(&self, reactor: &Rc<Reactor>, name: &'static str) {
        let notes = self.clone();
        start(reactor, move || notes.note(name));
    }
}

/// Starts an operation that completes at once, and calls `f` then.
fn start(reactor: &Rc<Reactor>, f: impl Fn() + 'static) {
    // Not given up before.
    let operation = Rc::new(Cell::new(None));
    let own = Rc::clone(&operation);
    let sink = calls(move |_: io::Result<u32>, _| {
        let _own = own.take();
        f();
    });
    operation.set(Some(reactor.submit_to(Nop, sink)));
}

/// Asks whether to give the thread back, in a round that has lasted: that hands over what was
/// submitted and reaps.
fn need_preempt(reactor: &Reactor) {
    let unarmed_until = Instant::now() + MIN_SLICE;
    while Instant::now() <= unarmed_until {
        std::hint::spin_loop();
    }
    reactor.need_preempt();
}

#[test]
fn a_waker_that_reaps_does_not_overtake_completions() {
    let reactor = reactor(8);
    let notes = Notes::default();
    turn(&reactor);
    let (own, in_first) = (notes.clone(), Rc::downgrade(&reactor));
    start(&reactor, move || {
        let reactor = in_first.upgrade().expect("it is turning");
        own.start(&reactor, "nested");
        need_preempt(&reactor);
        assert_eq!(reactor.in_flight().len(), 0, "it was reaped");
        own.note("first");
    });
    notes.start(&reactor, "second");
    turn_until(&reactor, || notes.0.borrow().len() == 3);
    assert_eq!(*notes.0.borrow(), ["first", "second", "nested"]);
}

/// A waker that drops a listener and reaps, while accepted connections wait for their delivery.
#[test]
fn connections_accepted_before_a_cancellation_are_delivered() {
    // Fewer than half a ring: they are submitted in one go.
    const CLIENTS: usize = 3;
    let reactor = reactor(8);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let clients: Vec<_> = (0..CLIENTS).map(|_| TcpStream::connect(address)).collect();
    let given_up = Rc::new(Cell::new(Vec::<SinkHandle>::new()));
    let accepted = Rc::new(RefCell::new(Vec::new()));
    let (own, notes, weak) = (given_up.clone(), accepted.clone(), Rc::downgrade(&reactor));
    let sink = calls(move |connection: io::Result<OwnedFd>, _has_more| {
        notes.borrow_mut().push(connection);
        let given_up = own.take();
        if !given_up.is_empty() {
            drop(given_up);
            let reactor: Rc<Reactor> = weak.upgrade().expect("it is turning");
            reactor.cancel_now();
            need_preempt(&reactor);
        }
    });
    turn(&reactor);
    let listener = listener.as_raw_fd();
    let operations = clients.iter().map(|_| {
        let accept = AcceptOne { listener };
        reactor.submit_to(accept, sink.clone())
    });
    given_up.set(operations.collect());
    turn_until(&reactor, || reactor.in_flight().len() == 0);
    let accepted = accepted.borrow();
    assert!(accepted.iter().all(Result::is_ok), "{accepted:?}");
    assert_eq!(accepted.len(), clients.len(), "none is lost");
}

#[test]
fn a_sink_or_waker_that_panics_loses_no_other_completion() {
    /// A waker whose destructor panics, too.
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("a waker panics, as intended");
        }
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("the destructor of a waker panics, as intended");
            }
        }
    }
    let reactor = reactor(8);
    let notes = Notes::default();
    notes.start(&reactor, "before");
    start(&reactor, || panic!("a sink panics, as intended"));
    let mut operation = reactor.submit(Nop);
    assert!(poll(&mut operation, &Waker::from(Arc::new(Panics))).is_none());
    start(&reactor, || drop(Arc::new(Panics)));
    notes.start(&reactor, "after");
    turn(&reactor);
    assert_eq!(*notes.0.borrow(), ["before", "after"]);
    assert!(!reactor.driver.completions.are_undelivered());
}

/// A log that panics is told of a sink that does.
#[test]
fn a_log_that_panics_in_the_reaping_loses_no_completion() {
    let reactor = reactor(8);
    let notes = Notes::default();
    start(&reactor, || panic!("a sink panics, as intended"));
    notes.start(&reactor, "after");
    tracing::subscriber::with_default(HostileLog(|| {}), || turn(&reactor));
    assert_eq!(*notes.0.borrow(), ["after"]);
}

/// The kernel gives one, or twenty, at a time.
#[test]
fn operations_that_end_a_sleep_together_are_told_in_one_turn() {
    const OPERATIONS: usize = 50;
    let reactor = reactor(64);
    let bell = eventfd();
    let (woken, waker) = counting_waker();
    let mut operations: Vec<_> = (0..OPERATIONS)
        .map(|_| reactor.submit(readable(&bell)))
        .collect();
    for operation in &mut operations {
        assert!(poll(operation, &waker).is_none());
    }
    turn(&reactor);
    signal(&bell);
    idle_turn(&reactor);
    assert_eq!(woken.get(), OPERATIONS);
    shut_down(&reactor);
}
