//! Direct I/O: registered memory, and the second ring.
//!
//! Few machines have a device that is polled. What such a device refuses is seen on all: a file
//! that was not opened for direct I/O is refused by the kernel in its place. What it would complete
//! is played: the operation goes to a ring that is never entered.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use super::super::op::{Bytes, Read, Route, Write};
use super::*;
use crate::memory::DmaBuffer;
use crate::ring::Outcome;
use crate::shares::TaskQueueHandle;
use crate::stats::Counted;
use crate::sys::block_device::PolledQueue;
use crate::sys::descriptor::Descriptor;

const BYTES: usize = 4096;

const QUEUE: TaskQueueHandle = TaskQueueHandle::from_index(0);

fn reactor_with_memory(io_memory_bytes: usize) -> Rc<Reactor> {
    reactor_with(Settings {
        io_memory_bytes,
        ..settings(8)
    })
}

/// A file of two pages of sevens, opened with further flags of `open(2)`. `None` where the
/// filesystem does not have them.
fn file(flags: libc::c_int) -> Option<Descriptor> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, [7; 2 * BYTES]).expect("the disk has room");
    let mut options = File::options();
    let options: &mut OpenOptions = options.read(true).write(true).custom_flags(flags);
    let file = options.open(&path).inspect_err(|error| {
        eprintln!("no direct I/O in the temporary folder, what needs it is left out: {error}");
    });
    Some(Descriptor::new(OwnedFd::from(file.ok()?)))
}

fn direct_file() -> Option<Descriptor> {
    file(libc::O_DIRECT)
}

fn page_cache_file() -> Descriptor {
    file(0).expect("every filesystem has this")
}

fn read(file: &Descriptor, buffer: DmaBuffer, route: Route) -> Read {
    Read {
        fd: file.clone().into(),
        buffer,
        start: 0,
        position: 0,
        route,
    }
}

/// The route through the queue of a device that nothing has asked yet.
fn polled() -> (&'static PolledQueue, Route) {
    let queue = &*Box::leak(Box::<PolledQueue>::default());
    let route = Route {
        is_registered: false,
        polled: Some(queue),
    };
    (queue, route)
}

/// Turns until `operation` is done, as an executor without anything else to do.
fn finish<O: super::super::op::Op>(
    reactor: &Reactor,
    mut operation: OpHandle<O>,
) -> io::Result<O::Output> {
    let (woken, waker) = counting_waker();
    assert!(poll(&mut operation, &waker).is_none());
    while woken.get() == 0 {
        idle_turn(reactor);
    }
    poll(&mut operation, &waker).expect("it is done")
}

fn state(reactor: &Reactor) -> String {
    reactor.driver.rings().registration()
}

#[test]
fn memory_is_registered_by_the_first_direct_io() {
    let Some(file) = direct_file() else { return };
    let reactor = reactor_with_memory(1 << 20);
    let mut buffer = reactor.allocate_dma_buffer(BYTES);
    assert!(state(&reactor).contains("Untried"), "no buffer is enough");
    let on_heap = reactor.allocate_dma_buffer(2 << 20);
    assert!(!reactor.is_registered(&on_heap));
    assert!(state(&reactor).contains("Untried"));
    assert!(reactor.is_registered(&buffer));
    assert!(state(&reactor).contains("Done"));
    assert!(!reactor.is_registered(&on_heap));
    let other = reactor_with_memory(1 << 20);
    let of_other = other.allocate_dma_buffer(BYTES);
    assert!(!reactor.is_registered(&of_other), "another arena");

    let route = Route {
        is_registered: true,
        polled: None,
    };
    buffer.as_bytes_mut().fill(1);
    let write = Write {
        fd: file.clone().into(),
        bytes: Bytes::Dma(buffer),
        start: 0,
        position: 0,
        route,
    };
    let written = finish(
        &reactor,
        reactor.submit_counted(write, Counted::Write, QUEUE),
    );
    assert_eq!(written.unwrap().count.unwrap(), BYTES);
    let whole = reactor.allocate_dma_buffer(2 * BYTES);
    let operation = reactor.submit_counted(read(&file, whole, route), Counted::Read, QUEUE);
    let (whole, count) = finish(&reactor, operation).unwrap();
    assert_eq!(count, 2 * BYTES);
    assert!(whole.as_bytes()[..BYTES].iter().all(|byte| *byte == 1));
    assert!(whole.as_bytes()[BYTES..].iter().all(|byte| *byte == 7));

    // Memory that the kernel does not know under this name is refused, not read.
    let operation = reactor.submit_counted(read(&file, of_other, route), Counted::Read, QUEUE);
    let error = finish(&reactor, operation).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
}

/// The kernel registers no more than a gigabyte at once.
#[test]
fn memory_that_cannot_be_registered_is_used_all_the_same() {
    let reactor = reactor_with_memory(2 << 30);
    let buffer = reactor.allocate_dma_buffer(BYTES);
    for _ in 0..2 {
        assert!(!reactor.is_registered(&buffer));
        assert!(state(&reactor).contains("Failed"));
    }
    // The second ring does without, too.
    let (queue, _) = polled();
    reactor.driver.rings().polls_for(queue);
    let file = page_cache_file();
    let operation = reactor.submit(read(&file, buffer, Route::default()));
    assert_eq!(finish(&reactor, operation).unwrap().1, BYTES);
}

#[test]
fn memory_is_registered_with_the_second_ring_whichever_comes_first() {
    for ring_first in [false, true] {
        let reactor = reactor_with_memory(1 << 20);
        let buffer = reactor.allocate_dma_buffer(BYTES);
        let (queue, _) = polled();
        if ring_first {
            assert!(reactor.driver.rings().polls_for(queue));
        }
        assert!(reactor.is_registered(&buffer));
        assert!(reactor.driver.rings().polls_for(queue));
        let ring = reactor.driver.rings().polled().expect("it was asked for");
        let memory = reactor
            .driver
            .rings()
            .memory()
            .extent()
            .expect("a buffer was taken");
        #[allow(unsafe_code, reason = "registering asks for a promise")]
        // SAFETY: the memory lives as long as the reactor, whose rings are dropped before it.
        let again = unsafe { ring.register(memory) };
        let error = again.expect_err("it is registered");
        assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
    }
}

#[test]
fn what_cannot_be_polled_for_goes_the_ordinary_way_from_then_on() {
    let reactor = reactor_with_memory(1 << 20);
    let file = page_cache_file();
    let (queue, route) = polled();
    assert!(
        reactor.driver.rings().polled().is_none(),
        "nothing has asked for it"
    );
    for round in 0..3 {
        let buffer = reactor.allocate_dma_buffer(BYTES);
        let operation = reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE);
        let unfinished = reactor.driver.in_flight().borrow().unfinished_polled();
        assert_eq!(unfinished, usize::from(round == 0));
        let (buffer, count) = finish(&reactor, operation).unwrap();
        assert_eq!((count, buffer.as_bytes()), (BYTES, &[7; BYTES][..]));
        assert!(!queue.is_usable());
        assert!(reactor.driver.rings().polled().is_some());
        assert!(!reactor.driver.is_polling());
    }
    let stats = reactor.take_io_stats();
    assert_eq!(stats.main_ring.file_reads(), (3, 3 * BYTES as u64));
    assert_eq!(stats.poll_ring.file_reads(), (0, 0));
    // Another device is another matter.
    let (other, _) = polled();
    assert!(reactor.driver.rings().polls_for(other));
    shut_down(&reactor);
}

/// On a device that can do it or not: the data comes, and the statistics say by which ring.
#[test]
fn direct_io_by_the_second_ring_brings_the_data() {
    let Some(file) = direct_file() else { return };
    let reactor = reactor_with_memory(1 << 20);
    let (queue, route) = polled();
    let operations: Vec<_> = (0..50)
        .map(|_| {
            let buffer = reactor.allocate_dma_buffer(BYTES);
            let route = Route {
                is_registered: reactor.is_registered(&buffer),
                ..route
            };
            reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE)
        })
        .collect();
    for operation in operations {
        let (buffer, count) = finish_one(&reactor, operation).unwrap();
        assert_eq!((count, buffer.as_bytes()), (BYTES, &[7; BYTES][..]));
    }
    assert!(!reactor.driver.is_polling());
    let stats = reactor.take_io_stats();
    eprintln!(
        "the device can be polled: {}, by the second ring: {:?}",
        queue.is_usable(),
        stats.poll_ring.file_reads()
    );
    assert_eq!(stats.all_rings().file_reads(), (50, 50 * BYTES as u64));
    assert_eq!(stats.poll_ring.file_reads().0 == 50, queue.is_usable());
}

/// As [`finish`], of one that may be done already.
fn finish_one<O: super::super::op::Op>(
    reactor: &Reactor,
    mut operation: OpHandle<O>,
) -> io::Result<O::Output> {
    let (_, waker) = counting_waker();
    let started = Instant::now();
    loop {
        if let Some(done) = poll(&mut operation, &waker) {
            return done;
        }
        assert!(started.elapsed() < PATIENCE, "it never ends");
        turn(reactor);
    }
}

/// Puts what waits for the second ring into one that is never entered: it is in flight, for the
/// reactor, until the test completes it.
fn play(reactor: &Reactor, never_entered: &Ring) {
    let flushed = reactor
        .driver
        .in_flight()
        .borrow_mut()
        .flush_polled(never_entered);
    flushed.expect("there is room");
}

fn complete(reactor: &Reactor, key: OpKey, raw: i32) {
    let completion = Completion {
        user_data: key.user_data(),
        outcome: Outcome::of(raw),
    };
    reactor.driver.completions().play(|deliveries| {
        let mut in_flight = reactor.driver.in_flight().borrow_mut();
        in_flight.complete_polled(completion, deliveries);
    });
}

#[test]
fn the_thread_does_not_sleep_as_long_as_the_device_is_to_be_asked() {
    let reactor = reactor_with_memory(1 << 20);
    let never_entered =
        Ring::new(8, 1, crate::ring::Driver::IoUring).expect("this machine has io_uring");
    let file = page_cache_file();
    let (queue, route) = polled();
    let buffer = reactor.allocate_dma_buffer(BYTES);
    let mut operation = reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE);
    let (woken, waker) = counting_waker();
    assert!(poll(&mut operation, &waker).is_none());
    play(&reactor, &never_entered);
    // A sleep would end by this.
    let (slept, late) = counting_waker();
    let mut end = timer(&reactor);
    end.arm(Instant::now() + PATIENCE, &late);
    for _ in 0..100 {
        assert!(reactor.driver.is_polling());
        idle_turn(&reactor);
    }
    assert_eq!((woken.get(), slept.get()), (0, 0));
    let key = reactor.driver.in_flight().borrow().keys()[0];
    complete(&reactor, key, 100);
    assert!(!reactor.driver.is_polling());
    turn(&reactor);
    assert_eq!(woken.get(), 1);
    let done = poll(&mut operation, &waker).expect("it is done");
    assert_eq!(done.unwrap().1, 100);
    assert!(queue.is_usable());
    let stats = reactor.take_io_stats();
    assert_eq!(stats.poll_ring.file_reads(), (1, 100));
    assert_eq!(stats.main_ring.file_reads(), (0, 0));
    assert_eq!(
        reactor.take_queue_io_stats(QUEUE).poll_ring.file_reads(),
        (1, 100)
    );
}

/// What is left of it in the line is no reason to enter the kernel again and again, and takes no
/// memory.
#[test]
fn an_idle_thread_sleeps_though_polled_operations_were_given_up_in_the_line() {
    let reactor = reactor_with_memory(1 << 20);
    let file = page_cache_file();
    let (_, route) = polled();
    for _ in 0..100 {
        let buffer = reactor.allocate_dma_buffer(BYTES);
        drop(reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE));
    }
    assert!(!reactor.driver.is_polling());
    assert!(!reactor.driver.in_flight().borrow().has_backlog());
    let (slept, end_of_sleep) = counting_waker();
    let mut end = timer(&reactor);
    end.arm(Instant::now() + Duration::from_millis(50), &end_of_sleep);
    let mut turns = 0;
    while slept.get() == 0 {
        idle_turn(&reactor);
        turns += 1;
    }
    assert!(turns < 10, "{turns} turns of an idle thread");
    // What follows goes its way.
    let buffer = reactor.allocate_dma_buffer(BYTES);
    let operation = reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE);
    assert_eq!(finish(&reactor, operation).unwrap().1, BYTES);
}

/// An answer would come too early: the thread sleeps, and hears of all else meanwhile.
#[test]
fn an_idle_thread_sleeps_before_the_device_is_asked() {
    let reactor = reactor_with_memory(1 << 20);
    let never_entered =
        Ring::new(8, 1, crate::ring::Driver::IoUring).expect("this machine has io_uring");
    let file = page_cache_file();
    let (_, route) = polled();
    let wait = reactor.driver.polled_wait();
    let now = Instant::now();
    wait.handed_over(now, false);
    wait.completed(now + LONG);
    let buffer = reactor.allocate_dma_buffer(BYTES);
    let operation = reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE);
    play(&reactor, &never_entered);
    let (_keep, mut turns) = (operation, 0);
    for round in 0..20 {
        // As if it had just been handed over.
        wait.handed_over(Instant::now(), false);
        let (fired, waker) = counting_waker();
        let mut end = timer(&reactor);
        if round % 2 == 0 {
            end.arm(Instant::now(), &waker);
        }
        while reactor.driver.polled_sleep_end().is_some() {
            idle_turn(&reactor);
            turns += 1;
        }
        assert!(round % 2 == 1 || fired.get() == 1, "a timer ends it");
    }
    assert!(turns <= 80, "{turns} turns in twenty sleeps");
    let key = reactor.driver.in_flight().borrow().keys()[0];
    complete(&reactor, key, 100);
}

/// A device whose completions are polled for: the one that `GLOMMIO_TEST_POLLED_DEVICE` names, which
/// is only read, or one that the kernel makes of memory (`null_blk` with `configfs`), which is
/// written, too.
struct PolledDevice {
    path: std::path::PathBuf,
    made: Option<std::path::PathBuf>,
}

impl PolledDevice {
    fn find() -> Option<Self> {
        if let Some(path) = std::env::var_os("GLOMMIO_TEST_POLLED_DEVICE") {
            let path = path.into();
            return Some(PolledDevice { path, made: None });
        }
        let made = Self::make();
        if let Err(error) = &made {
            eprintln!(
                "left out: no polled device: GLOMMIO_TEST_POLLED_DEVICE names none, and null_blk has \
                 made none: {error}"
            );
        }
        made.ok()
    }

    fn make() -> io::Result<Self> {
        let folder = std::path::PathBuf::from("/sys/kernel/config/nullb/glommio_test");
        std::fs::create_dir(&folder)?;
        let mut device = PolledDevice {
            path: "/dev/null".into(),
            made: Some(folder.clone()),
        };
        let settings = [
            ("size", "16"),
            ("memory_backed", "1"),
            ("queue_mode", "2"),
            ("poll_queues", "1"),
            ("power", "1"),
        ];
        for (name, value) in settings {
            std::fs::write(folder.join(name), value)?;
        }
        let index = std::fs::read_to_string(folder.join("index"))?;
        device.path = format!("/dev/nullb{}", index.trim()).into();
        Ok(device)
    }
}

impl Drop for PolledDevice {
    fn drop(&mut self) {
        if let Some(folder) = &self.made {
            let _ = std::fs::write(folder.join("power"), "0");
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[test]
fn a_polled_device_is_read_and_written_by_the_second_ring() {
    let Some(device) = PolledDevice::find() else {
        return;
    };
    let is_ours = device.made.is_some();
    let opened = File::options()
        .read(true)
        .write(is_ours)
        .custom_flags(libc::O_DIRECT)
        .open(&device.path);
    let file = Descriptor::new(OwnedFd::from(opened.expect("it was just found")));
    let reactor = reactor_with_memory(1 << 20);
    let (queue, route) = polled();
    for round in 0..100_u8 {
        if is_ours {
            let mut buffer = reactor.allocate_dma_buffer(BYTES);
            buffer.as_bytes_mut().fill(round);
            let write = Write {
                fd: file.clone().into(),
                bytes: Bytes::Dma(buffer),
                start: 0,
                position: 0,
                route,
            };
            let write = reactor.submit_counted(write, Counted::Write, QUEUE);
            let written = finish_one(&reactor, write).expect("the device takes it");
            assert_eq!(written.count.expect("the device takes it"), BYTES);
        }
        let buffer = reactor.allocate_dma_buffer(BYTES);
        let operation = reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE);
        let (buffer, count) = finish_one(&reactor, operation).expect("the device has it");
        assert_eq!(count, BYTES);
        assert!(!is_ours || buffer.as_bytes() == [round; BYTES]);
    }
    assert!(queue.is_usable(), "it was to be polled");
    assert_eq!(reactor.take_io_stats().poll_ring.file_reads().0, 100);
    shut_down(&reactor);
    drop(file);
}

#[test]
fn what_is_given_up_is_forgotten_or_awaited_and_not_cancelled() {
    let reactor = reactor_with_memory(1 << 20);
    let never_entered =
        Ring::new(8, 1, crate::ring::Driver::IoUring).expect("this machine has io_uring");
    let file = page_cache_file();
    let (queue, route) = polled();
    let start = || {
        let buffer = reactor.allocate_dma_buffer(BYTES);
        reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE)
    };
    drop(start());
    assert!(!reactor.driver.is_polling());
    assert_eq!(reactor.driver.in_flight().borrow().len(), 0);
    play(&reactor, &never_entered);
    assert_eq!(never_entered.queued(), 0, "it was forgotten");

    for raw in [BYTES as i32, -libc::EIO, -libc::EOPNOTSUPP] {
        let operation = start();
        play(&reactor, &never_entered);
        drop(operation);
        assert!(reactor.driver.is_polling(), "the kernel has its memory");
        assert!(!reactor.driver.in_flight().borrow().has_cancels());
        let key = reactor.driver.in_flight().borrow().keys()[0];
        complete(&reactor, key, raw);
        turn(&reactor);
        assert_eq!(reactor.driver.in_flight().borrow().len(), 0, "{raw}");
        assert!(!reactor.driver.is_polling());
    }
    assert!(!queue.is_usable(), "the last one was refused");
}

#[test]
fn an_error_of_the_device_is_that_of_the_operation() {
    let reactor = reactor_with_memory(1 << 20);
    let never_entered =
        Ring::new(8, 1, crate::ring::Driver::IoUring).expect("this machine has io_uring");
    let file = page_cache_file();
    let (queue, route) = polled();
    let buffer = reactor.allocate_dma_buffer(BYTES);
    let mut operation = reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE);
    play(&reactor, &never_entered);
    let key = reactor.driver.in_flight().borrow().keys()[0];
    complete(&reactor, key, -libc::EIO);
    let (_, waker) = counting_waker();
    let error = poll(&mut operation, &waker)
        .expect("it is done")
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO));
    assert!(
        queue.is_usable(),
        "this does not mean that it is not polled"
    );
}

#[test]
fn the_end_waits_for_what_is_polled_for() {
    for handed_over in [false, true] {
        let reactor = reactor_with_memory(1 << 20);
        let Some(file) = direct_file() else { return };
        let (_, route) = polled();
        let operations: Vec<_> = (0..20)
            .map(|_| {
                let buffer = reactor.allocate_dma_buffer(BYTES);
                reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE)
            })
            .collect();
        if handed_over {
            reactor.driver.hand_over_polled();
        }
        shut_down(&reactor);
        assert!(!reactor.driver.is_polling());
        drop(operations);
    }
}

#[test]
fn many_at_once_reach_the_kernel_at_once() {
    let reactor = reactor_with_memory(1 << 20);
    let file = page_cache_file();
    let (_, route) = polled();
    let start = || {
        let buffer = reactor.allocate_dma_buffer(BYTES);
        reactor.submit_counted(read(&file, buffer, route), Counted::Read, QUEUE)
    };
    let half = reactor.ring_entries() / 2;
    let mut operations: Vec<_> = (1..half).map(|_| start()).collect();
    assert!(reactor.driver.in_flight().borrow().has_backlog());
    operations.push(start());
    assert!(!reactor.driver.in_flight().borrow().has_backlog());
    for operation in operations {
        assert_eq!(finish_one(&reactor, operation).unwrap().1, BYTES);
    }
}
