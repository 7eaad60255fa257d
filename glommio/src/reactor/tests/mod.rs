//! The reactor by itself, without an executor: it is turned by hand.

mod direct;
mod faults;
mod given_up;
mod hurried;
mod io_counters;
mod model;
mod multishot;
mod operations;
mod ops;
#[cfg(feature = "simulation")]
mod paused;
mod reap;
mod rounds;
mod shutdown;
mod slack;
mod sleep_timeout;
mod timed_wait;
mod timer_entry;

use std::cell::{Cell, Ref, RefCell};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};
use ops::{Nop, readable, watch};

use super::in_flight::InFlight;
use super::user_data::{IGNORED, OpKey, PREEMPTION, SLEEP_TIMEOUT, WAKE_UP};
use super::*;
use crate::panic::FirstPanic;
use crate::ring::{Completion, Ring, Wait};

impl Reactor {
    fn in_flight(&self) -> Ref<'_, InFlight> {
        self.driver.in_flight.borrow()
    }

    fn ring(&self) -> &Ring {
        self.driver.ring()
    }

    fn slice_timeout(&self) -> Option<Instant> {
        self.driver.timeouts.slice_timeout.get()
    }
}

/// Hands over what was submitted.
fn flush(reactor: &Reactor) {
    let flushed = reactor.driver.in_flight.borrow_mut().flush(reactor.ring());
    assert!(flushed.is_ok());
}

/// Long enough never to matter.
const LONG: Duration = Duration::from_secs(3600);

/// A hang is a failure that says where it is.
const PATIENCE: Duration = Duration::from_secs(60);

fn notifier() -> Arc<Notifier> {
    Arc::new(Notifier::new().expect("a descriptor is free"))
}

fn reactor_with(settings: Settings) -> Rc<Reactor> {
    let pools = PoolsSettings {
        thread_name: String::from("test"),
        placed: Some(Vec::new()),
        own: None,
        inherited: None,
    };
    Reactor::new(settings, notifier(), pools).expect("this machine has io_uring")
}

fn settings(ring_depth: usize) -> Settings {
    Settings {
        ring_depth,
        executors: 1,
        spin_before_park: Duration::ZERO,
        timer_slack: Duration::ZERO,
        timer_precision: TimerPrecision::Balanced,
        driver: crate::ring::Driver::IoUring,
        io_memory_bytes: 0,
        record_io_latencies: false,
        start_paused: false,
    }
}

fn reactor_spinning(ring_depth: usize, spin_before_park: Duration) -> Rc<Reactor> {
    reactor_with(Settings {
        spin_before_park,
        ..settings(ring_depth)
    })
}

fn reactor(ring_depth: usize) -> Rc<Reactor> {
    reactor_spinning(ring_depth, Duration::ZERO)
}

/// A turn that does not sleep, as if there were tasks to run.
fn turn(reactor: &Reactor) -> Turn {
    reactor.turn(|| LONG, true, || false)
}

/// Turns until `is_done`, without sleeping.
fn turn_until(reactor: &Reactor, is_done: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < PATIENCE, "it never comes true");
        turn(reactor);
    }
}

fn timer(reactor: &Rc<Reactor>) -> TimerEntry {
    TimerEntry::new(Rc::downgrade(reactor))
}

/// A turn as of an executor with nothing to run.
fn idle_turn(reactor: &Reactor) -> Turn {
    reactor.turn(|| LONG, true, || true)
}

/// Ends what is left, as an executor does.
fn shut_down(reactor: &Reactor) {
    let mut panics = FirstPanic::default();
    reactor.shutdown(&mut panics);
    assert!(panics.take().is_none());
    assert_eq!(reactor.in_flight().len(), 0);
    assert!(!reactor.in_flight().waits_for_device());
}

/// Counts its wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Count {
    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn counting_waker() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

/// The result of `operation`, if it has completed.
fn poll<T>(
    operation: &mut (impl Future<Output = io::Result<T>> + Unpin),
    waker: &Waker,
) -> Option<io::Result<T>> {
    match Pin::new(operation).poll(&mut Context::from_waker(waker)) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

/// The result as the kernel says it.
fn raw(result: &io::Result<u32>) -> i32 {
    match result {
        Ok(value) => i32::try_from(*value).expect("it was not negative"),
        Err(error) => -error.raw_os_error().expect("the kernel said it"),
    }
}

/// A descriptor that is readable once it was written to.
fn eventfd() -> EventFd {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .expect("a descriptor is free")
}

fn signal(eventfd: &EventFd) {
    eventfd.write(1).expect("an eventfd takes a small number");
}
