//! One ring in each of its modes. A mode that this kernel does not have steps down to the next,
//! which the tests then run in; that is what programs get, too.

#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use super::instance::ENTERS;
use super::iowq_workaround::tests::workers;
use super::setup::completions_wanted;
use super::{KernelRing as Ring, *};
use crate::ring::TimeoutCell;
use crate::sys::limits;

const SLICE: TimeoutCell = TimeoutCell::Slice;
const MODES: [Mode; 3] = [Mode::Defer, Mode::Coop, Mode::Plain];

fn ring(mode: Mode, depth: usize) -> Ring {
    Ring::with_first_mode(depth, 1, mode).expect("this machine has io_uring")
}

/// A ring that is not in the table of this thread.
fn unregistered(mode: Mode, depth: usize) -> Ring {
    let mut built = setup::build_best(depth, 1, mode).expect("this machine has io_uring");
    let registered = Features::from_iter([Feature::RegisteredRing]);
    built.features = built.features.and(registered.others());
    Ring::of(built)
}

/// With moments and with distances in time, and by its descriptor, too.
fn in_each_mode(depth: usize, test: impl Fn(&Ring)) {
    for mode in MODES {
        test(&ring(mode, depth));
        let mut shifted = ring(mode, depth);
        shifted.features = shifted.features.in_shifted_time();
        test(&shifted);
        test(&unregistered(mode, depth));
    }
}

/// One of each kind, for the tests of all rings.
pub(in crate::ring) fn rings(depth: usize) -> [Ring; 3] {
    MODES.map(|mode| ring(mode, depth))
}

impl crate::ring::Ring {
    /// Has each `enter` fail, since the descriptor is of something else and the table is empty.
    pub(crate) fn fail_from_now_on(&self) {
        const UNREGISTER_RING_FDS: libc::c_uint = 21;
        for place in 0..PLACES as u64 {
            // The number of the place, and a descriptor that does not matter.
            let entry = [place, 0];
            // SAFETY: the kernel reads one entry, which has this size.
            unsafe {
                libc::syscall(
                    libc::SYS_io_uring_register,
                    self.as_raw_fd(),
                    UNREGISTER_RING_FDS,
                    entry.as_ptr(),
                    1,
                )
            };
        }
        replace_descriptor(self.as_raw_fd());
    }

    /// Marks work as put off by the kernel, though there is none.
    #[cfg(feature = "simulation")]
    pub(crate) fn mark_deferred_work(&self) {
        use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
        use std::os::fd::{FromRawFd, OwnedFd};
        use std::sync::atomic::{AtomicU32, Ordering};

        const TASKRUN: u32 = 1 << 2;
        // `struct io_uring_params`, whose `sq_off.flags` says where the flags are.
        let mut params = [0_u32; 30];
        // SAFETY: the kernel reads and writes one such struct, which has this size, and gives a new descriptor.
        let _ring = unsafe {
            let fd = libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr());
            OwnedFd::from_raw_fd(fd.try_into().expect("it is a descriptor"))
        };
        let page = std::num::NonZero::new(4096).expect("it is not zero");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a mapping of its own of memory that the kernel shares with all that map it, in which one number is
        // changed atomically, as the kernel does.
        unsafe {
            let fd = BorrowedFd::borrow_raw(self.as_raw_fd());
            let rings =
                mmap(None, page, access, MapFlags::MAP_SHARED, fd, 0).expect("it is mapped");
            let flags = rings.byte_add(params[14] as usize).cast::<AtomicU32>();
            flags.as_ref().fetch_or(TASKRUN, Ordering::Relaxed);
            munmap(rings, page.get()).expect("it was mapped");
        }
        assert!(self.has_deferred_work());
    }
}

/// Has a descriptor be one of something else.
fn replace_descriptor(fd: RawFd) {
    let null = std::fs::File::open("/dev/null").expect("there is such a device");
    // SAFETY: the ring owns the descriptor as before, and closes it.
    let replaced = unsafe { nix::unistd::dup2_raw(null, fd) };
    let _ = replaced.expect("both are open").into_raw_fd();
}

/// Of the table of each thread.
const PLACES: usize = 16;

/// Enters often enough for the ring to be put into the table.
fn settle(ring: &Ring) {
    for _ in 0..ENTERS {
        ring.enter(Wait::Now).expect("entering works");
    }
}

/// Whether it is in the table of this thread, so that it can do without its descriptor.
fn is_registered(ring: &Ring) -> bool {
    settle(ring);
    let fd = ring.as_raw_fd();
    // SAFETY: the ring has it open.
    let own =
        nix::unistd::dup(unsafe { BorrowedFd::borrow_raw(fd) }).expect("descriptors are left");
    replace_descriptor(fd);
    push(ring, nop(1));
    let is_found = ring.enter(Wait::Now).is_ok() && reap(ring).len() == 1;
    // Before Linux 6.3 a place in the table is given back by the descriptor.
    // SAFETY: the ring owns it as before.
    let back = unsafe { nix::unistd::dup2_raw(own, fd) };
    let _ = back.expect("both are open").into_raw_fd();
    is_found
}

fn is_registering(ring: &Ring) -> bool {
    let is_used = ring.features().has(Feature::RegisteredRing);
    if !is_used {
        eprintln!("skipped: this kernel has no table of rings for each thread, or is told so");
    }
    is_used
}

fn reap(ring: &Ring) -> Vec<Completion> {
    let mut reaped = Vec::new();
    ring.reap(&mut reaped);
    reaped
}

/// Enters until `count` completions are there.
fn collect(ring: &Ring, count: usize) -> Vec<Completion> {
    let mut reaped = reap(ring);
    while reaped.len() < count {
        ring.enter(Wait::Forever).expect("entering works");
        ring.reap(&mut reaped);
    }
    assert_eq!(reaped.len(), count);
    reaped
}

fn nop(name: u64) -> Submission<'static> {
    Submission::nop().with_user_data(name)
}

fn push(ring: &Ring, submission: Submission<'_>) {
    ring.push_memoryless(&submission)
        .expect("the queue has room");
}

/// The kernel has a list for each 32 completions, and 256 at most. A cancellation looks through one.
#[test]
fn one_of_many_idle_connections_is_found_in_one_of_many_lists() {
    let lists =
        |depth, descriptors| (completions_wanted(depth, descriptors, u64::MAX) / 32).min(256);
    assert_eq!(
        [4, 64, 128, 1024].map(|depth| lists(depth, 1024)),
        [0, 8, 16, 128]
    );
    // The longest list has as many connections as with 1024 descriptors, or a few times as many.
    assert_eq!(
        [1024, 8192, 20_000, u64::MAX].map(|it| lists(128, it)),
        [16, 128, 256, 256]
    );
    // A ring that did not fit into what may be locked would be waited for.
    assert_eq!(
        [0, 64 << 10, 1 << 20].map(|lockable| completions_wanted(128, u64::MAX, lockable)),
        [512, 1024, 8192]
    );
    let (descriptors, lockable) = (
        limits::descriptor_limit(),
        limits::locked_memory_limit_bytes(),
    );
    for depth in [4, 64, 128, 1024] {
        // Rings of other tests may have their shares of what may be locked.
        let range = |descriptors| {
            let wanted = |lockable| completions_wanted(depth as u32, descriptors, lockable);
            wanted(0)..=wanted(lockable)
        };
        in_each_mode(depth, |ring| {
            assert!(range(descriptors).contains(&ring.ring.params().cq_entries()));
        });
        let shared = setup::build_best(depth, 8, Mode::Defer).expect("this machine has io_uring");
        assert!(range(descriptors / 8).contains(&shared.ring.params().cq_entries()));
    }
}

#[run_test(in_each_mode(2))]
fn more_completions_than_the_queue_holds_are_all_delivered(ring: &Ring) {
    const COUNT: usize = 500;
    let mut reaped = Vec::new();
    for name in 0..COUNT {
        while ring.push_memoryless(&nop(name as u64)).is_err() {
            // Nothing reaps: the completion queue of 8 overflows inside the kernel, which may
            // then refuse to take more.
            let queued = ring.queued();
            ring.enter(Wait::Now).unwrap();
            if ring.queued() == queued {
                ring.reap(&mut reaped);
            }
        }
    }
    while reaped.len() < COUNT {
        ring.enter(Wait::Forever).unwrap();
        ring.reap(&mut reaped);
    }
    let mut names: Vec<_> = reaped.iter().map(|it| it.user_data as usize).collect();
    names.sort_unstable();
    assert!(names.iter().copied().eq(0..COUNT), "{} names", names.len());
}

/// Between the push and the system call the machine may stand still.
#[test]
fn the_distance_to_a_deadline_is_measured_when_it_is_submitted() {
    let mut ring = ring(Mode::Defer, 4);
    ring.features = ring.features.in_shifted_time();
    for cell in [SLICE, TimeoutCell::Sleep] {
        // Measured at the push, it would be late by a step at least, each time.
        let is_on_time = (1..=10).any(|round| {
            let step = Duration::from_millis(20) * round;
            let deadline = Instant::now() + step * 2;
            ring.push_timeout(cell, deadline, 1).unwrap();
            std::thread::sleep(step);
            collect(&ring, 1);
            let fired = Instant::now();
            assert!(fired >= deadline);
            fired < deadline + step
        });
        assert!(is_on_time);
    }
}

/// A connect to a Unix socket with a full backlog blocks one of the kernel's threads.
#[test]
fn operations_that_may_take_any_time_do_not_take_all_threads() {
    const OPERATIONS: usize = 100;
    let folder = tempfile::tempdir().expect("the disk has room");
    let address = SockAddr::unix(folder.path().join("socket")).expect("it is short");
    let socket = || Socket::new(Domain::UNIX, Type::STREAM, None).expect("descriptors are free");
    let listener = socket();
    listener.bind(&address).expect("it is free");
    listener.listen(0).expect("it is bound");
    let first = socket();
    first.connect(&address).expect("there is room for one");
    let ring = ring(Mode::Defer, OPERATIONS);
    let clients: Vec<_> = (0..OPERATIONS).map(|_| socket()).collect();
    for client in &clients {
        let connect = Submission::connect(client.as_raw_fd(), &address);
        // SAFETY: the address is there until all have completed, at the end.
        unsafe { ring.push(&connect) }.expect("there is room");
    }
    let most = setup::UNBOUND_WORKERS as usize;
    let end = Instant::now() + Duration::from_secs(300);
    while workers() < most && Instant::now() < end {
        ring.enter(Wait::Until(Instant::now() + Duration::from_millis(1)))
            .unwrap();
    }
    std::thread::sleep(Duration::from_millis(20));
    // One more is for files, at most.
    assert!((most..=most + 1).contains(&workers()), "{}", workers());
    drop(listener);
    collect(&ring, OPERATIONS);
}

#[run_test(in_each_mode(4))]
fn programs_that_are_started_do_not_inherit_the_ring(ring: &Ring) {
    // SAFETY: asking for the flags of a descriptor touches no memory.
    let flags = unsafe { libc::fcntl(ring.as_raw_fd(), libc::F_GETFD) };
    assert!(flags >= 0 && flags & libc::FD_CLOEXEC != 0, "{flags}");
}

#[test]
fn a_ring_is_in_the_table_of_its_thread_as_long_as_it_is_there() {
    if !is_registering(&ring(Mode::Defer, 4)) {
        return;
    }
    for _ in 0..3 * PLACES {
        assert!(is_registered(&ring(Mode::Defer, 4)), "a place is free");
    }
    assert!(!is_registered(&unregistered(Mode::Defer, 4)));
    // One that is soon over does not pay for it.
    let young = ring(Mode::Defer, 4);
    replace_descriptor(young.as_raw_fd());
    assert!(young.enter(Wait::Now).is_err());
}

#[test]
fn where_the_table_is_full_a_ring_has_its_descriptor() {
    let many: Vec<_> = (0..PLACES + 4).map(|_| ring(Mode::Defer, 4)).collect();
    for ring in many.iter().rev() {
        settle(ring);
        push(ring, nop(1));
        assert_eq!(collect(ring, 1).len(), 1);
    }
    if is_registering(&many[0]) {
        let registered = many.iter().filter(|ring| is_registered(ring)).count();
        assert_eq!(registered, PLACES);
    }
}

/// The table would keep it, and with it what is in flight.
#[test]
fn a_dropped_ring_lets_go_of_what_it_was_asked_about() {
    for mode in MODES {
        let (reader, writer) = nix::unistd::pipe().expect("descriptors are left");
        let ring = ring(mode, 4);
        let events = libc::POLLIN as u32;
        push(&ring, Submission::poll_once(reader.as_raw_fd(), events));
        settle(&ring);
        drop((reader, ring));
        // The kernel takes a ring apart some milliseconds later.
        let patience = Instant::now() + Duration::from_secs(20);
        while nix::unistd::write(&writer, b"1") != Err(nix::errno::Errno::EPIPE) {
            assert!(Instant::now() < patience, "the pipe is still read from");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// There, its place in the table may be that of another ring, as may the memory of its queues.
#[test]
fn a_ring_dropped_in_a_forked_child_leaves_those_of_the_child_alone() {
    let inherited = ring(Mode::Defer, 4);
    settle(&inherited);
    // SAFETY: the child makes a ring and ends by `_exit`; the allocator can be used there.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "a process is free");
    if pid == 0 {
        // SAFETY: it takes a number.
        unsafe { libc::alarm(100) };
        let own = ring(Mode::Defer, 4);
        settle(&own);
        let is_used = own.features().has(Feature::RegisteredRing);
        drop(inherited);
        let is_well = is_registered(&own) == is_used;
        // SAFETY: always allowed.
        unsafe { libc::_exit(if is_well { 42 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is a place for a number.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 42,
        "{status:#x}"
    );
    push(&inherited, nop(1));
    assert_eq!(collect(&inherited, 1).len(), 1);
}
