//! What each ring does that an executor may get: the kernel's in each of its modes, and that of epoll.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::eventfd::{EfdFlags, EventFd};

use super::epoll::EpollRing;
use super::uring::tests::rings;
use super::*;

const SLICE: TimeoutCell = TimeoutCell::Slice;

fn in_each(depth: usize, test: impl Fn(&Ring)) {
    rings(depth).map(Ring::Kernel).iter().for_each(&test);
    let epoll = EpollRing::new(depth).expect("descriptors are left");
    test(&Ring::Epoll(Box::new(epoll)));
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

fn eventfd() -> EventFd {
    EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
        .expect("a descriptor is left")
}

fn signal(eventfd: &EventFd) {
    eventfd.write(1).expect("an eventfd takes a small number");
}

#[run_test(in_each(8))]
fn what_is_pushed_completes_once_under_its_name(ring: &Ring) {
    (1..=5).for_each(|name| push(ring, nop(name)));
    assert_eq!(ring.queued(), 5);
    let mut names: Vec<_> = collect(ring, 5).iter().map(|it| it.user_data).collect();
    names.sort_unstable();
    assert_eq!(names, [1, 2, 3, 4, 5]);
    assert_eq!(ring.queued(), 0);
    ring.enter(Wait::Now).unwrap();
    assert!(reap(ring).is_empty(), "nothing completes twice");
}

#[test]
fn a_full_queue_says_so_and_takes_more_after_an_enter() {
    for depth in [1, 2, 4] {
        in_each(depth, |ring| {
            (0..depth).for_each(|name| push(ring, nop(name as u64)));
            assert!(ring.push_memoryless(&nop(99)).is_err());
            assert_eq!(ring.queued(), depth, "what was refused is not queued");
            ring.enter(Wait::Now).unwrap();
            push(ring, nop(99));
            let reaped = collect(ring, depth + 1);
            assert_eq!(reaped.last().map(|it| it.user_data), Some(99));
        });
    }
}

#[run_test(in_each(4))]
fn errors_keep_their_errno(ring: &Ring) {
    push(
        ring,
        Submission::poll_once(-1, libc::POLLIN as u32).with_user_data(7),
    );
    let failed = collect(ring, 1).remove(0);
    assert_eq!(failed.user_data, 7);
    let error = failed.outcome.result().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EBADF));
}

#[run_test(in_each(4))]
fn a_wait_ends_at_its_deadline_and_not_before(ring: &Ring) {
    let deadline = Instant::now() + Duration::from_millis(5);
    while Instant::now() < deadline {
        ring.enter(Wait::Until(deadline)).unwrap();
    }
    assert!(reap(ring).is_empty(), "a deadline is not a completion");
    // The past is no wait at all, and no error.
    ring.enter(Wait::Until(deadline)).unwrap();
}

#[run_test(in_each(4))]
fn a_wait_for_what_is_there_already_returns(ring: &Ring) {
    push(ring, nop(1));
    ring.enter(Wait::Now).unwrap();
    ring.enter(Wait::Forever).unwrap();
    assert_eq!(reap(ring).len(), 1);
}

#[run_test(in_each(4))]
fn what_is_ready_shows_beside_operations_that_complete_at_once(ring: &Ring) {
    let event = eventfd();
    let readable = Submission::poll_once(event.as_raw_fd(), libc::POLLIN as u32);
    push(ring, readable.with_user_data(1));
    ring.enter(Wait::Now).unwrap();
    signal(&event);
    let patience = Instant::now() + Duration::from_secs(20);
    let mut reaped = Vec::new();
    while !reaped.iter().any(|it: &Completion| it.user_data == 1) {
        assert!(Instant::now() < patience, "it is never looked at");
        push(ring, nop(2));
        ring.enter(Wait::Forever).unwrap();
        reaped = reap(ring);
    }
}

#[run_test(in_each(4))]
fn a_timeout_shows_without_a_system_call_of_the_waiting_thread(ring: &Ring) {
    let deadline = Instant::now() + Duration::from_millis(5);
    ring.push_timeout(SLICE, deadline, 3).unwrap();
    ring.submit_only().unwrap();
    assert!(!ring.work_pending() || Instant::now() >= deadline);
    let patience = deadline + Duration::from_secs(20);
    while !ring.work_pending() {
        assert!(Instant::now() < patience, "the timeout never showed");
        std::hint::spin_loop();
    }
    assert!(Instant::now() >= deadline);
    let fired = collect(ring, 1).remove(0);
    assert_eq!((fired.user_data, fired.outcome.raw), (3, -libc::ETIME));
}

#[run_test(in_each(4))]
fn a_timeout_is_moved_both_ways(ring: &Ring) {
    let hour = Duration::from_secs(3600);
    ring.push_timeout(SLICE, Instant::now() + hour, 3).unwrap();
    ring.submit_only().unwrap();
    let soon = Instant::now() + Duration::from_millis(2);
    ring.push_timeout_move(SLICE, soon, 3, 4).unwrap();
    let completions = collect(ring, 2);
    assert!(Instant::now() >= soon);
    let moved = completions.iter().find(|it| it.user_data == 4).unwrap();
    assert_eq!(moved.outcome.raw, 0);
    let fired = completions.iter().find(|it| it.user_data == 3).unwrap();
    assert_eq!(fired.outcome.raw, -libc::ETIME);

    // A machine that stands still lets it fire before it is moved: again then, with more time.
    for doubled in 1..14 {
        let before = Instant::now() + Duration::from_millis(1 << doubled);
        ring.push_timeout(SLICE, before, 5).unwrap();
        ring.submit_only().unwrap();
        ring.push_timeout_move(SLICE, Instant::now() + hour, 5, 6)
            .unwrap();
        let mut reaped = Vec::new();
        let outcome = loop {
            ring.enter(Wait::Forever).unwrap();
            ring.reap(&mut reaped);
            if let Some(moved) = reaped.iter().find(|it| it.user_data == 6) {
                break moved.outcome.raw;
            }
        };
        if outcome == 0 {
            ring.enter(Wait::Until(before + Duration::from_millis(3)))
                .unwrap();
            ring.reap(&mut reaped);
            assert_eq!(reaped.len(), 1, "it fired where it stood before");
            return;
        }
        collect(ring, 2 - reaped.len());
    }
    panic!("it always fires before it is moved");
}

#[run_test(in_each(4))]
fn a_timeout_taken_back_completes_as_cancelled(ring: &Ring) {
    ring.push_timeout(SLICE, Instant::now() + Duration::from_secs(3600), 3)
        .unwrap();
    ring.submit_only().unwrap();
    ring.push_timeout_removal(3, 4).unwrap();
    let mut results: Vec<_> = collect(ring, 2)
        .iter()
        .map(|it| (it.user_data, it.outcome.raw))
        .collect();
    results.sort_unstable();
    assert_eq!(results, [(3, -libc::ECANCELED), (4, 0)]);
}

#[run_test(in_each(4))]
fn removing_or_moving_a_timeout_that_has_fired_is_an_error_and_nothing_else(ring: &Ring) {
    ring.push_timeout(SLICE, Instant::now(), 3).unwrap();
    assert_eq!(collect(ring, 1)[0].user_data, 3);
    ring.push_timeout_removal(3, 4).unwrap();
    ring.push_timeout_move(SLICE, Instant::now(), 3, 5).unwrap();
    for late in collect(ring, 2) {
        assert_eq!(late.outcome.raw, -libc::ENOENT, "{late:?}");
    }
}

#[run_test(in_each(4))]
fn deadlines_that_the_kernel_cannot_count_to_are_accepted(ring: &Ring) {
    let never = crate::reactor::deadline_after(Instant::now(), Duration::MAX);
    ring.push_timeout(SLICE, never, 3).unwrap();
    ring.submit_only().unwrap();
    push(ring, nop(1));
    ring.enter(Wait::Until(never)).unwrap();
    let reaped = reap(ring);
    assert_eq!(reaped.len(), 1, "only the no-op is done: {reaped:?}");
    assert_eq!(reaped[0].user_data, 1);
}

#[run_test(in_each(8))]
fn a_poll_completes_once_and_a_watch_again_and_again(ring: &Ring) {
    let (once, always) = (eventfd(), eventfd());
    let events = libc::POLLIN as u32;
    push(
        ring,
        Submission::poll_once(once.as_raw_fd(), events).with_user_data(1),
    );
    push(
        ring,
        Submission::poll_always(always.as_raw_fd(), events).with_user_data(2),
    );
    ring.enter(Wait::Now).unwrap();
    assert!(reap(ring).is_empty());
    signal(&once);
    let completion = collect(ring, 1).remove(0);
    assert_eq!(
        (completion.user_data, completion.outcome.has_more()),
        (1, false)
    );
    // Never read, as the reactor does it: each signal is an event of its own.
    for _ in 0..3 {
        signal(&always);
        let completion = collect(ring, 1).remove(0);
        assert_eq!(
            (completion.user_data, completion.outcome.has_more()),
            (2, true)
        );
    }
    signal(&once);
    ring.enter(Wait::Now).unwrap();
    assert!(reap(ring).is_empty(), "a one-shot poll is over");
}

#[run_test(in_each(8))]
fn a_cancelled_poll_completes_as_cancelled(ring: &Ring) {
    let quiet = eventfd();
    push(
        ring,
        Submission::poll_once(quiet.as_raw_fd(), libc::POLLIN as u32).with_user_data(1),
    );
    push(ring, Submission::cancel(1).with_user_data(2));
    push(ring, Submission::cancel(77).with_user_data(3));
    let mut results: Vec<_> = collect(ring, 3)
        .iter()
        .map(|it| (it.user_data, it.outcome.raw))
        .collect();
    results.sort_unstable();
    assert_eq!(results, [(1, -libc::ECANCELED), (2, 0), (3, -libc::ENOENT)]);
}

#[test]
#[should_panic(expected = "its memory needs an owner")]
fn memory_does_not_slip_past_its_owner() {
    let ring = Ring::Epoll(Box::new(EpollRing::new(4).expect("descriptors are left")));
    let address = socket2::SockAddr::from(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
    let _ = ring.push_memoryless(&Submission::connect(-1, &address));
}
