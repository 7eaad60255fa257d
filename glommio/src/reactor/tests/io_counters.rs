//! What operations are counted as. The ones on files are real, on a temporary file and on a pipe.

use std::os::fd::{AsRawFd, OwnedFd};

use super::op::Op;
use super::ops::{read, write};
use super::*;
use crate::shares::TaskQueueHandle;
use crate::stats::{Counted, IoStats, RingIoStats};

const QUEUE: TaskQueueHandle = TaskQueueHandle::from_index(3);

fn reactor_recording(record_io_latencies: bool) -> Rc<Reactor> {
    reactor_with(Settings {
        record_io_latencies,
        ..settings(8)
    })
}

/// Runs one operation to its end.
fn run<O: Op>(reactor: &Rc<Reactor>, op: O, counted: Counted) -> io::Result<O::Output> {
    let (woken, waker) = counting_waker();
    let mut operation = reactor.submit_counted(op, counted, QUEUE);
    assert!(poll(&mut operation, &waker).is_none());
    turn_until(reactor, || woken.get() == 1);
    poll(&mut operation, &waker).expect("it is done")
}

/// How many values the three distributions have.
fn recorded(stats: &RingIoStats) -> [usize; 3] {
    [
        stats.pre_reactor_io_scheduler_latency_us().count(),
        stats.io_latency_us().count(),
        stats.post_reactor_io_scheduler_latency_us().count(),
    ]
}

#[track_caller]
fn assert_zero(stats: &IoStats) {
    let stats = stats.all_rings();
    assert_eq!(stats.counters(), [(0, 0); 7]);
    assert_eq!(recorded(&stats), [0; 3]);
}

/// A pipe, the reading end first.
fn pipe() -> (OwnedFd, OwnedFd) {
    nix::unistd::pipe().expect("descriptors are free")
}

#[test]
fn what_is_not_taken_is_counted_all_the_same() {
    let reactor = reactor_recording(true);
    let (reader, writer) = pipe();
    let given_up = reactor.submit_counted(read(reader.as_raw_fd(), 9), Counted::Read, QUEUE);
    turn(&reactor);
    run(&reactor, write(writer.as_raw_fd(), 9), Counted::Write).expect("the other end is open");
    let is_counted = || {
        let stats = reactor.io_counters().take_queue(QUEUE);
        stats.main_ring.file_reads() == (1, 9)
    };
    turn_until(&reactor, is_counted);
    drop(given_up);
    turn_until(&reactor, || reactor.in_flight().len() == 0);
    let stats = reactor.io_counters().take().all_rings();
    assert_eq!(stats.file_reads(), (1, 9));
    assert_eq!(recorded(&stats), [1, 1, 0]);
}

#[test]
fn a_queue_that_is_gone_keeps_no_account() {
    let reactor = reactor(8);
    let (reader, writer) = pipe();
    let (woken, waker) = counting_waker();
    let mut late = reactor.submit_counted(read(reader.as_raw_fd(), 9), Counted::Read, QUEUE);
    assert!(poll(&mut late, &waker).is_none());
    turn(&reactor);
    reactor.io_counters().forget(QUEUE);
    reactor
        .io_counters()
        .forget(TaskQueueHandle::from_index(99));
    nix::unistd::write(&writer, &[1; 9]).expect("the other end is open");
    turn_until(&reactor, || woken.get() == 1);
    assert_zero(&reactor.io_counters().take_queue(QUEUE));
    assert_eq!(
        reactor.io_counters().take().all_rings().file_reads(),
        (1, 9)
    );
}
