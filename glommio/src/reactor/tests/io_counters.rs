//! What operations are counted as. The ones on files are real, on a temporary file and on a pipe.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::path::Path;

use super::op::Op;
use super::ops::{Close, open, read, write};
use super::*;
use crate::shares::TaskQueueHandle;
use crate::stats::{Counted, IoStats, RingIoStats};

/// Time that passes for sure.
const WHILE: Duration = Duration::from_millis(2);

/// As [`WHILE`], as the sketches have it: they are accurate to 1 %, but extremes are exact.
const WHILE_US: f64 = 2000.0;

const QUEUE: TaskQueueHandle = TaskQueueHandle::from_index(3);
const OTHER: TaskQueueHandle = TaskQueueHandle::from_index(1);

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
fn the_operations_on_a_file_are_counted_for_the_executor_and_for_their_queue() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    let reactor = reactor(8);
    let create = open(&path, libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC);
    let file = run(&reactor, create, Counted::Open).expect("the folder is ours");
    let fd = file.as_raw_fd();
    for bytes in [10, 100] {
        let written = run(&reactor, write(fd, bytes), Counted::BufferedWrite);
        assert_eq!(written.expect("the file is open"), bytes as u32);
    }
    assert_eq!(run(&reactor, write(fd, 1), Counted::Write).unwrap(), 1);
    let fd = file.into_raw_fd();
    run(&reactor, Close { fd }, Counted::Close).expect("it is open");
    let again = open(&path, libc::O_RDONLY | libc::O_CLOEXEC);
    let file = run(&reactor, again, Counted::Open).expect("it is there");
    let fd = file.as_raw_fd();
    let cached = run(&reactor, read(fd, 80), Counted::BufferedRead);
    assert_eq!(cached.unwrap(), [1; 80]);
    let rest = run(&reactor, read(fd, 80), Counted::Read);
    assert_eq!(rest.unwrap(), [1; 31]);
    // Not by the close that is counted.
    drop(file);
    let expected = [(2, 0), (1, 0), (1, 31), (0, 0), (1, 80), (1, 1), (2, 110)];

    assert_zero(&reactor.io_counters().take_queue(OTHER));
    assert_zero(
        &reactor
            .io_counters()
            .take_queue(TaskQueueHandle::from_index(99)),
    );
    let of_queue = reactor.io_counters().take_queue(QUEUE);
    assert_eq!(of_queue.main_ring.counters(), expected);
    assert_zero(&reactor.io_counters().take_queue(QUEUE));
    let of_executor = reactor.io_counters().take();
    assert_eq!(of_executor.main_ring.counters(), expected);
    assert_eq!(of_executor.all_rings().counters(), expected);
    assert_eq!(
        recorded(&of_executor.main_ring),
        [0; 3],
        "it was not asked for"
    );
    assert_zero(&reactor.io_counters().take());
}

#[test]
fn failures_and_what_is_not_asked_for_are_not_counted() {
    let reactor = reactor_recording(true);
    let (reader, _writer) = pipe();
    let missing = open(Path::new("/nowhere/at all"), libc::O_RDONLY);
    assert!(run(&reactor, missing, Counted::Open).is_err());
    let wrong_end = write(reader.as_raw_fd(), 1);
    assert!(run(&reactor, wrong_end, Counted::Write).is_err());
    assert!(run(&reactor, read(-1, 1), Counted::Read).is_err());
    let (woken, waker) = counting_waker();
    let mut uncounted = reactor.submit(Nop);
    assert!(poll(&mut uncounted, &waker).is_none());
    turn_until(&reactor, || woken.get() == 1);
    assert!(poll(&mut uncounted, &waker).is_some());
    assert_zero(&reactor.io_counters().take());
    assert_zero(&reactor.io_counters().take_queue(QUEUE));
}

#[test]
fn the_three_legs_of_a_read_are_timed_and_those_of_others_are_not() {
    let reactor = reactor_recording(true);
    let (reader, writer) = pipe();
    let (woken, waker) = counting_waker();
    let fd = reader.as_raw_fd();
    let mut waiting = reactor.submit_counted(read(fd, 9), Counted::BufferedRead, QUEUE);
    assert!(poll(&mut waiting, &waker).is_none());
    std::thread::sleep(WHILE);
    turn(&reactor);
    std::thread::sleep(WHILE * 2);
    run(&reactor, write(writer.as_raw_fd(), 9), Counted::Write).expect("the other end is open");
    turn_until(&reactor, || woken.get() == 1);
    std::thread::sleep(WHILE * 3);
    let unread = reactor.io_counters().take().all_rings();
    assert_eq!(
        recorded(&unread),
        [1, 1, 0],
        "it is completed and not taken"
    );
    let bytes = poll(&mut waiting, &waker).expect("it is done");
    assert_eq!(bytes.unwrap(), [1; 9]);
    let read = reactor.io_counters().take().all_rings();
    assert_eq!(recorded(&read), [0, 0, 1]);
    assert_eq!(read.counters(), [(0, 0); 7]);
    let of_queue = reactor.io_counters().take_queue(QUEUE).all_rings();
    assert_eq!(recorded(&of_queue), [1; 3], "the write is not timed");
    for (leg, whiles) in [
        (unread.pre_reactor_io_scheduler_latency_us(), 1.0),
        (unread.io_latency_us(), 2.0),
        (read.post_reactor_io_scheduler_latency_us(), 3.0),
        (of_queue.pre_reactor_io_scheduler_latency_us(), 1.0),
        (of_queue.io_latency_us(), 2.0),
        (of_queue.post_reactor_io_scheduler_latency_us(), 3.0),
    ] {
        let took_us = leg.min().expect("one value");
        assert!(took_us >= whiles * WHILE_US, "{took_us} for {whiles}");
    }
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
    turn_until(&reactor, || reactor.driver.in_flight().borrow().len() == 0);
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
