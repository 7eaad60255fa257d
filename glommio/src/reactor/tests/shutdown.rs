//! The end of a reactor in which something goes wrong: the drain goes on, and what it cannot drain
//! is leaked.

use std::os::fd::AsRawFd;
use std::panic::panic_any;
use std::sync::atomic::AtomicPtr;

use nix::unistd::pipe;

use super::ops::Read;
use super::*;
use crate::panic::tests::{Chain, HostileLog};
use crate::reactor::shutdown::drain;

/// So large that the allocator maps it, and unmaps it when it is freed.
const MAPPED_BYTES: usize = 64 << 20;

fn is_mapped(address: *const u8) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs is mounted");
    let number = |text| usize::from_str_radix(text, 16).expect("maps are given in hexadecimal");
    maps.lines().any(|line| {
        let (range, _) = line.split_once(' ').expect("an address range comes first");
        let (start, end) = range.split_once('-').expect("a range has two ends");
        (number(start)..number(end)).contains(&address.addr())
    })
}

/// The kernel has been given memory to write to, some day, and `end` ends the reactor before that
/// day: the memory stays.
fn memory_survives(end: impl FnOnce(Rc<Reactor>)) {
    // Leaked on purpose: known from here, it is nothing that the address sanitizer complains of.
    static LEAKED: [AtomicPtr<u8>; 2] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];
    let reactor = reactor(8);
    let (reader, _writer) = pipe().expect("a descriptor is free");
    let mut buffer = vec![0; MAPPED_BYTES];
    let address = buffer.as_mut_ptr();
    for place in &LEAKED {
        let null = std::ptr::null_mut();
        let order = Ordering::SeqCst;
        if place.compare_exchange(null, address, order, order).is_ok() {
            break;
        }
    }
    let fd = reader.as_raw_fd();
    let operation = reactor.submit(Read { fd, buffer });
    turn(&reactor);
    end(reactor);
    assert!(is_mapped(address));
    drop(operation);
}

#[test]
fn a_reactor_that_is_dropped_undrained_leaks_what_the_kernel_may_write_to() {
    memory_survives(drop);
}

#[test]
fn a_reactor_whose_ring_fails_leaks_what_the_kernel_may_write_to() {
    memory_survives(|reactor| {
        reactor.ring().fail_from_now_on();
        let mut panics = FirstPanic::default();
        reactor.shutdown(&mut panics);
        assert!(panics.take().is_none());
        assert_eq!(reactor.in_flight().len(), 1);
    });
}

#[test]
fn what_the_kernel_does_not_know_goes_with_the_table() {
    let reactor = reactor(8);
    let (count, waker) = counting_waker();
    let (mut queued, mut completed) = (reactor.submit(Nop), reactor.submit(Nop));
    assert!(poll(&mut completed, &waker).is_none());
    turn_until(&reactor, || count.get() == 1);
    drop(queued);
    queued = reactor.submit(Nop);
    assert!(poll(&mut queued, &waker).is_none());
    drop((reactor, waker));
    assert_eq!(Arc::strong_count(&count), 1);
}

/// Panics with each completion.
struct Panics;

impl Sink for Panics {
    type Item = io::Result<u32>;

    fn complete(&self, _result: io::Result<u32>, _has_more: bool) {
        panic_any(Chain(3));
    }
}

#[test]
fn a_sink_that_panics_does_not_end_the_drain() {
    let reactor = reactor(8);
    let quiet = eventfd();
    let guard = reactor.submit_to(readable(&quiet), Rc::new(Panics));
    turn(&reactor);
    let mut panics = FirstPanic::default();
    reactor.shutdown(&mut panics);
    assert_eq!(reactor.in_flight().len(), 0);
    assert!(panics.take().is_none(), "it is contained where it happens");
    drop(guard);
}

/// The line that says what is waited for goes to a subscriber that panics; before, it brings the
/// end of the wait about.
#[test]
fn a_log_that_panics_does_not_end_the_drain() {
    struct Silent;
    impl Sink for Silent {
        type Item = io::Result<u32>;

        fn complete(&self, _result: io::Result<u32>, _has_more: bool) {}
    }
    let reactor = reactor(8);
    let quiet = Arc::new(eventfd());
    let _guard = reactor.submit_to(readable(&quiet), Rc::new(Silent));
    turn(&reactor);
    let (count, told) = (Arc::new(Count::default()), Arc::clone(&quiet));
    let counts = Arc::clone(&count);
    let log = HostileLog(move || {
        counts.wake_by_ref();
        signal(&told);
    });
    // Not to wait forever if nothing is logged.
    let late = Arc::clone(&quiet);
    std::thread::spawn(move || {
        std::thread::sleep(PATIENCE);
        signal(&late);
    });
    let mut panics = FirstPanic::default();
    tracing::subscriber::with_default(log, || drain(&reactor.driver, Duration::ZERO, &mut panics));
    assert_eq!(reactor.in_flight().len(), 0);
    assert!(count.get() > 0);
    assert!(panics.take().is_none());
}
