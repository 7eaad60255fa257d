//! What epoll and the threads for files do in ways of their own.

#![allow(unsafe_code)]

use std::io::{Read, Write, pipe};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{Expiration, TimerSetTimeFlags};

use super::super::CURRENT_POSITION;
use super::*;

const READABLE: u32 = libc::POLLIN as u32;

fn ring() -> EpollRing {
    EpollRing::new(64).expect("descriptors are left")
}

fn push(ring: &EpollRing, submission: Submission<'_>) {
    ring.push_memoryless(&submission).expect("there is room");
}

fn poll(ring: &EpollRing, fd: RawFd, name: u64) {
    push(
        ring,
        Submission::poll_once(fd, READABLE).with_user_data(name),
    );
}

/// What has completed, at once.
fn look(ring: &EpollRing) -> Vec<(u64, i32)> {
    ring.enter(Wait::Now).expect("epoll works");
    let mut reaped = Vec::new();
    ring.reap(&mut reaped);
    reaped
        .iter()
        .map(|it| (it.user_data, it.outcome.raw))
        .collect()
}

/// What completes, of which there is this much.
fn collect(ring: &EpollRing, count: usize) -> Vec<(u64, i32)> {
    let mut completed = look(ring);
    while completed.len() < count {
        ring.enter(Wait::Forever).expect("epoll works");
        completed.extend(look(ring));
    }
    completed.sort_unstable();
    completed
}

#[test]
fn a_number_that_was_closed_behind_a_wait_stands_for_its_next_file() {
    let ring = ring();
    let (reader, writer) = pipe().expect("descriptors are left");
    let number = reader.as_raw_fd();
    poll(&ring, number, 1);
    assert_eq!(look(&ring), []);
    drop(reader);
    drop(writer);
    let (mut writer, reader) = UnixStream::pair().expect("descriptors are left");
    let reader = match reader.as_raw_fd() {
        fd if fd == number => reader.into_raw_fd(),
        // SAFETY: it makes a descriptor, of this number if it is free.
        fd => unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, number) },
    };
    if reader != number {
        return eprintln!("skipped: another test has taken the number");
    }
    poll(&ring, number, 2);
    assert_eq!(
        look(&ring),
        [(1, -libc::EBADF)],
        "its end will not be told any more"
    );
    writer.write_all(b"x").expect("there is room");
    assert_eq!(collect(&ring, 1), [(2, READABLE as i32)]);
    // SAFETY: it is ours.
    unsafe { libc::close(number) };
}

#[test]
fn a_file_that_lives_on_under_another_number_tells_nothing_of_the_old_one() {
    let ring = ring();
    let (reader, mut writer) = pipe().expect("descriptors are left");
    let elsewhere = reader.try_clone().expect("descriptors are left");
    poll(&ring, reader.as_raw_fd(), 1);
    push(
        &ring,
        Submission::poll_always(reader.as_raw_fd(), READABLE).with_user_data(2),
    );
    assert_eq!(look(&ring), []);
    // As an owner does that closes: it gives up what waits, first.
    push(&ring, Submission::cancel(1).with_user_data(3));
    push(&ring, Submission::cancel(2).with_user_data(4));
    let canceled = [(1, -libc::ECANCELED), (2, -libc::ECANCELED), (3, 0), (4, 0)];
    assert_eq!(collect(&ring, 4), canceled);
    drop(reader);
    writer.write_all(b"x").expect("there is room");
    assert_eq!(look(&ring), []);
    drop(elsewhere);
}

/// As in a sandbox whose timers do not go by the clock that programs read.
#[test]
fn a_sleep_whose_timer_went_off_early_is_slept_to_its_end() {
    let ring = ring();
    let end = Instant::now() + Duration::from_secs(3600);
    let set = || {
        let interests = ring.interests.borrow();
        let limit = ring.timer.set(&interests, end, Instant::now());
        assert_eq!(limit.expect("it is valid"), EpollTimeout::NONE);
    };
    assert!(ring.timer.made().is_none(), "no sleep has an end so far");
    set();
    let descriptor = ring.timer.made().expect("descriptors are left");
    let is_armed = || descriptor.get().expect("it is open").is_some();
    assert!(is_armed());
    let now = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(1)));
    let flags = TimerSetTimeFlags::empty();
    descriptor.set(now, flags).expect("it is open");
    ring.enter(Wait::Until(end)).expect("epoll works");
    assert!(!is_armed());
    set();
    assert!(is_armed(), "the next sleep would have no end");
}

/// Also where the submission has a position.
#[test]
fn a_read_of_a_pipe_waits_for_data_and_takes_no_thread() {
    for position in [CURRENT_POSITION, 0] {
        let ring = ring();
        let (mut reader, mut writer) = pipe().expect("descriptors are left");
        let mut buffer = [0; 4];
        let read = Submission::read(reader.as_raw_fd(), &mut buffer, position).with_user_data(1);
        // SAFETY: the buffer outlives the completion, which is awaited.
        unsafe { ring.push(&read) }.expect("there is room");
        let end = Instant::now() + Duration::from_millis(5);
        while Instant::now() < end {
            ring.enter(Wait::Until(end)).expect("epoll works");
        }
        writer.write_all(b"abc").expect("there is room");
        assert_eq!(collect(&ring, 1), [(1, 3)]);
        assert_eq!(&buffer, b"abc\0");
        // One that is given up leaves the data to others.
        let mut unread = [0; 4];
        let read = Submission::read(reader.as_raw_fd(), &mut unread, position).with_user_data(2);
        // SAFETY: as before.
        unsafe { ring.push(&read) }.expect("there is room");
        assert_eq!(look(&ring), []);
        let end = Instant::now() + Duration::from_millis(5);
        while Instant::now() < end {
            ring.enter(Wait::Until(end)).expect("epoll works");
        }
        push(&ring, Submission::cancel(2).with_user_data(3));
        let ends = collect(&ring, 2);
        assert_eq!(ends[0], (2, -libc::ECANCELED));
        // At a position it is with a thread at first, which may not have run yet.
        assert!(ends[1] == (3, 0) || ends[1] == (3, -libc::ENOENT) && position == 0);
        writer.write_all(b"d").expect("there is room");
        let mut next = [0; 4];
        assert_eq!(reader.read(&mut next).expect("it was written"), 1);
        assert_eq!(unread, [0; 4]);
    }
}

/// Whether it is in the line then, with a thread, which finds that it is a pipe, or waits for data.
#[test]
fn a_read_of_a_pipe_ends_whenever_it_is_given_up() {
    let ring = ring();
    let (mut reader, mut writer) = pipe().expect("descriptors are left");
    let mut unread = [0; 4];
    for round in 0..500 {
        let read = Submission::read(reader.as_raw_fd(), &mut unread, 0).with_user_data(1);
        // SAFETY: the buffer outlives the completion, which is awaited, and a ring whose completion fails to come
        // has nothing to read into it.
        unsafe { ring.push(&read) }.expect("there is room");
        ring.submit_only().expect("epoll works");
        if round == 0 {
            while !ring.completions_posted() {
                std::thread::yield_now();
            }
        }
        (0..round).for_each(|_| std::hint::spin_loop());
        push(&ring, Submission::cancel(1).with_user_data(2));
        let mut completed = Vec::new();
        let patience = Instant::now() + Duration::from_secs(20);
        while completed.len() < 2 {
            assert!(Instant::now() < patience, "{round}: {completed:?} alone");
            completed.extend(look(&ring));
        }
        completed.sort_unstable();
        assert_eq!(completed[0], (1, -libc::ECANCELED));
        assert_eq!(completed[1].0, 2);
    }
    writer.write_all(b"d").expect("there is room");
    assert_eq!(look(&ring), []);
    let mut next = [0; 4];
    assert_eq!(reader.read(&mut next).expect("it was written"), 1);
    assert_eq!(unread, [0; 4]);
}

/// Each would never become ready.
#[test]
fn what_the_kernel_refuses_at_once_does_not_wait() {
    let ring = ring();
    let (reader, writer) = pipe().expect("descriptors are left");
    let write = Submission::write(reader.as_raw_fd(), b"abc", CURRENT_POSITION).with_user_data(1);
    // SAFETY: its memory is static.
    unsafe { ring.push(&write) }.expect("there is room");
    let mut buffer = [0; 4];
    let read =
        Submission::read(writer.as_raw_fd(), &mut buffer, CURRENT_POSITION).with_user_data(2);
    // SAFETY: the buffer outlives the completion, which is awaited.
    unsafe { ring.push(&read) }.expect("there is room");
    let bound = UdpSocket::bind("127.0.0.1:0").expect("ports are left");
    push(
        &ring,
        Submission::accept(bound.as_raw_fd()).with_user_data(3),
    );
    let (stream, _other) = UnixStream::pair().expect("descriptors are left");
    push(
        &ring,
        Submission::accept(stream.as_raw_fd()).with_user_data(4),
    );
    let refused = [
        (1, -libc::EBADF),
        (2, -libc::EBADF),
        (3, -libc::EOPNOTSUPP),
        (4, -libc::EINVAL),
    ];
    assert_eq!(look(&ring), refused);
}

#[test]
fn many_operations_at_a_time_complete_once_each_whatever_is_given_up() {
    const COUNT: u64 = 200;
    let ring = EpollRing::new(4096).expect("descriptors are left");
    let file = tempfile::tempfile().expect("there is a disk");
    let written = vec![7; 4096];
    for name in 1..=COUNT {
        let write = Submission::write(file.as_raw_fd(), &written, name * 4096).with_user_data(name);
        // SAFETY: the buffer outlives the completions, which are awaited.
        unsafe { ring.push(&write) }.expect("there is room");
        if name % 3 == 0 {
            push(
                &ring,
                Submission::cancel(name - 1).with_user_data(COUNT + name),
            );
        }
        if name % 10 == 0 {
            ring.submit_only().expect("epoll works");
        }
    }
    let orders = COUNT / 3;
    let completed = collect(&ring, (COUNT + orders) as usize);
    let names: Vec<_> = completed
        .iter()
        .map(|it| it.0)
        .filter(|it| *it <= COUNT)
        .collect();
    assert!(names.into_iter().eq(1..=COUNT));
    for (name, result) in completed {
        let is_well = match name {
            ..=COUNT => result == 4096 || name % 3 == 2 && result == -libc::ECANCELED,
            _ => result == 0 || result == -libc::ENOENT,
        };
        assert!(is_well, "{name}: {result}");
    }
    assert_eq!(look(&ring), []);
}

#[test]
fn a_dropped_ring_waits_for_what_its_threads_do_and_leaves_none() {
    let file = tempfile::tempfile().expect("there is a disk");
    let written = vec![7; 1 << 20];
    let ring = ring();
    for name in 1..=8 {
        let write = Submission::write(file.as_raw_fd(), &written, 0).with_user_data(name);
        // SAFETY: the buffer outlives the ring, which waits for its threads.
        unsafe { ring.push(&write) }.expect("there is room");
    }
    ring.submit_only().expect("epoll works");
    let shared = ring.workers.watch();
    drop(ring);
    assert!(shared.upgrade().is_none(), "a thread is left");
}
