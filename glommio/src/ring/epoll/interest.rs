//! What epoll watches: one registration for each descriptor, for all its waits.
//!
//! ```text
//!   add: ADD, or MOD, which looks anew ──▶ event ──▶ each wait for it ends, goes on, or tries again
//! ```
//!
//! Waits that end once have a registration that is off after its first event (`EPOLLONESHOT`); one among
//! them that goes on keeps it (`EPOLLET`). Either way nothing is told that nothing waits for, and the
//! next wait costs one call.
//!
//! A connection wakes one of the executors that accept from a listener, the one that has waited longest:
//! their registrations are exclusive (`EPOLLEXCLUSIVE`), and made anew for each accept. Those that do not
//! sleep are passed over.
//!
//! Each registration has a number of its own, by which events of one are told whose descriptor was closed
//! here and lives on elsewhere, such as in a forked process.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::socket::{self, Stream};
use super::workers::Job;
use crate::ring::completion::Completion;
use crate::ring::operation::Operation;

/// See the module.
pub(super) struct Interests {
    epoll: Epoll,
    by_fd: Map<RawFd, Interest>,
    /// The descriptor of each wait, by its user data.
    fds: Map<u64, RawFd>,
    last_registration: u32,
    /// What the kernel writes to.
    events: Vec<EpollEvent>,
}

struct Interest {
    registration: u32,
    /// Its registration cannot be changed.
    is_exclusive: bool,
    waits: Vec<Wait>,
}

/// Something that waits for `events` of a descriptor.
pub(super) struct Wait {
    pub(super) user_data: u64,
    pub(super) events: u32,
    pub(super) purpose: Purpose,
}

#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Poll {
        is_multi: bool,
    },
    Accept,
    /// With the mode that the socket had.
    Connect {
        was_blocking: bool,
    },
    /// A read or a write of what has no positions.
    Stream(Stream),
}

/// What becomes of a wait whose descriptor is ready.
enum Step {
    Ends(i32),
    GoesOn(i32),
    Waits,
    Blocks(Operation),
}

/// What is to be told of a look.
#[derive(Default)]
pub(super) struct Found {
    pub(super) completions: Vec<Completion>,
    /// What cannot be done without blocking.
    pub(super) jobs: Vec<Job>,
    /// The ring's own timer has gone off.
    pub(super) is_timer_due: bool,
}

/// Of descriptors of the ring's own.
const OWN: u32 = 0;

/// A descriptor of the ring's own, as what the kernel is given to tell with its events: others have a
/// registration in the upper half.
#[derive(Clone, Copy)]
pub(super) enum Own {
    Signal,
    Timer,
}

const EDGE: u32 = EpollFlags::EPOLLET.bits().cast_unsigned();
const ONCE: u32 = EpollFlags::EPOLLONESHOT.bits().cast_unsigned();
const EXCLUSIVE: u32 = EpollFlags::EPOLLEXCLUSIVE.bits().cast_unsigned();
/// Told also to those who did not ask.
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP).cast_unsigned();

/// Events that are taken with one call.
const BATCH: usize = 128;

impl Interests {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Interests {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            by_fd: Map::default(),
            fds: Map::default(),
            last_registration: OWN,
            events: vec![EpollEvent::empty(); BATCH],
        })
    }

    /// Ends a wait each time that this descriptor of the ring's own has become readable. It need not be
    /// read.
    pub(super) fn watch_own(&self, own: Own, fd: BorrowedFd<'_>) -> io::Result<()> {
        let events = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        Ok(self.epoll.add(fd, EpollEvent::new(events, own as u64))?)
    }

    /// Adds a wait, which begins with what is there. What epoll does not watch, such as a regular file, is
    /// ready.
    pub(super) fn add(&mut self, fd: RawFd, wait: Wait, found: &mut Found) {
        let user_data = wait.user_data;
        let interest = self.by_fd.entry(fd).or_insert_with(|| Interest {
            registration: OWN,
            is_exclusive: false,
            waits: Vec::with_capacity(1),
        });
        interest.waits.push(wait);
        let mut set = match interest.registration {
            OWN => Err(Errno::ENOENT),
            _ if interest.is_exclusive || interest.accepts() => {
                let removed = self.epoll.delete(borrowed(fd));
                removed.and_then(|()| interest.register(&self.epoll, fd))
            }
            _ => interest.modify(&self.epoll, fd),
        };
        if set == Err(Errno::ENOENT) {
            // New, or another file than the one that had this number before: that one was closed by
            // someone else, and nothing will be told of it.
            let last = interest.waits.pop().into_iter().collect();
            let lost = std::mem::replace(&mut interest.waits, last);
            are_lost(lost, &mut self.fds, found);
            self.last_registration = self.last_registration.wrapping_add(1).max(OWN + 1);
            interest.registration = self.last_registration;
            set = interest.register(&self.epoll, fd);
        }
        let Err(errno) = set else {
            self.fds.insert(user_data, fd);
            return;
        };
        let wait = interest.waits.pop().expect("it was pushed just now");
        if interest.waits.is_empty() {
            self.by_fd.remove(&fd);
        }
        match (errno, wait.purpose) {
            (Errno::EPERM, Purpose::Stream(it)) => found.jobs.push(Job {
                user_data,
                operation: it.operation(),
            }),
            (Errno::EPERM, Purpose::Poll { .. }) => {
                let always = (libc::POLLIN | libc::POLLOUT) as u32;
                found.complete(user_data, (wait.events & always).cast_signed());
            }
            _ => found.complete(user_data, -(errno as i32)),
        }
    }

    /// Gives up a wait, whose descriptor may be about to be closed. False if there is none of this name.
    pub(super) fn cancel(&mut self, user_data: u64) -> bool {
        let Some(fd) = self.fds.remove(&user_data) else {
            return false;
        };
        if let Some(interest) = self.by_fd.get_mut(&fd) {
            interest.waits.retain(|it| it.user_data != user_data);
            if interest.waits.is_empty() {
                self.remove(fd);
            }
        }
        true
    }

    /// The descriptor is about to be closed.
    pub(super) fn close(&mut self, fd: RawFd, found: &mut Found) {
        let lost = self.remove(fd);
        are_lost(lost, &mut self.fds, found);
    }

    /// The waits, of which there is none as a rule.
    fn remove(&mut self, fd: RawFd) -> Vec<Wait> {
        let Some(interest) = self.by_fd.remove(&fd) else {
            return Vec::new();
        };
        // It fails if the descriptor is closed already.
        let _ = self.epoll.delete(borrowed(fd));
        interest.waits
    }

    /// Waits for events, or looks whether there are any, and does what they are waited for.
    pub(super) fn wait(&mut self, limit: EpollTimeout, found: &mut Found) -> io::Result<()> {
        let count = match self.epoll.wait(&mut self.events, limit) {
            Ok(count) => count,
            Err(Errno::EINTR) => 0,
            Err(errno) => return Err(errno.into()),
        };
        for index in 0..count {
            let event = self.events[index];
            found.is_timer_due |= event.data() == Own::Timer as u64;
            let fd = (event.data() as u32).cast_signed();
            let registration = (event.data() >> 32) as u32;
            let interest = self.by_fd.get_mut(&fd);
            if let Some(interest) = interest.filter(|it| it.registration == registration) {
                if interest.waits.is_empty() {
                    // What went on was given up, and the rest has ended.
                    self.remove(fd);
                    continue;
                }
                interest.is_ready(fd, event.events().bits().cast_unsigned(), found, |ended| {
                    self.fds.remove(&ended);
                });
                match interest.is_exclusive {
                    true if interest.waits.is_empty() => drop(self.remove(fd)),
                    false if !interest.waits.is_empty() && interest.is_once() => {
                        // It is off now. An error would be that of a descriptor that was closed behind
                        // its waits.
                        let _ = interest.modify(&self.epoll, fd);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Their descriptor is closed behind them.
fn are_lost(waits: Vec<Wait>, fds: &mut Map<u64, RawFd>, found: &mut Found) {
    for Wait { user_data, .. } in waits {
        fds.remove(&user_data);
        found.complete(user_data, -libc::EBADF);
    }
}

impl Interest {
    fn is_ready(
        &mut self,
        fd: RawFd,
        events: u32,
        found: &mut Found,
        mut has_ended: impl FnMut(u64),
    ) {
        let mut index = 0;
        while let Some(wait) = self.waits.get(index) {
            let events = events & (wait.events | ALWAYS);
            let step = match events {
                0 => Step::Waits,
                _ => wait.go_on(fd, events),
            };
            match step {
                Step::Waits => index += 1,
                Step::GoesOn(result) => {
                    found.post(wait.user_data, result, true);
                    index += 1;
                }
                Step::Ends(result) => {
                    let user_data = self.waits.remove(index).user_data;
                    has_ended(user_data);
                    found.complete(user_data, result);
                }
                Step::Blocks(operation) => {
                    let user_data = self.waits.remove(index).user_data;
                    has_ended(user_data);
                    found.jobs.push(Job {
                        user_data,
                        operation,
                    });
                }
            }
        }
    }

    fn is_once(&self) -> bool {
        !(self.waits.iter()).any(|it| matches!(it.purpose, Purpose::Poll { is_multi: true }))
    }

    fn accepts(&self) -> bool {
        (self.waits.iter()).all(|it| matches!(it.purpose, Purpose::Accept))
    }

    fn event(&self, fd: RawFd) -> EpollEvent {
        let events = self.waits.iter().fold(EDGE, |all, it| all | it.events);
        let kind = match self.is_exclusive {
            true => EXCLUSIVE,
            false if self.is_once() => ONCE,
            false => 0,
        };
        let data = u64::from(self.registration) << 32 | u64::from(fd.cast_unsigned());
        let events = EpollFlags::from_bits_retain((events | kind).cast_signed());
        EpollEvent::new(events, data)
    }

    fn register(&mut self, epoll: &Epoll, fd: RawFd) -> Result<(), Errno> {
        if fd < 0 {
            return Err(Errno::EBADF);
        }
        self.is_exclusive = self.accepts();
        match epoll.add(borrowed(fd), self.event(fd)) {
            // It could not be removed when its number was closed, which stands for it again.
            Err(Errno::EEXIST) => epoll
                .delete(borrowed(fd))
                .and_then(|()| epoll.add(borrowed(fd), self.event(fd))),
            added => added,
        }
    }

    fn modify(&self, epoll: &Epoll, fd: RawFd) -> Result<(), Errno> {
        epoll.modify(borrowed(fd), &mut self.event(fd))
    }
}

impl Wait {
    /// The result of what need not wait, or is refused. A poll and a connect have begun by asking.
    pub(super) fn is_over_at_once(&self, fd: RawFd) -> Option<i32> {
        match self.purpose {
            Purpose::Accept | Purpose::Stream(_) => match self.go_on(fd, self.events) {
                Step::Ends(result) => Some(result),
                // Not before it is ready: what blocks would keep a thread until then.
                _ => None,
            },
            Purpose::Poll { .. } | Purpose::Connect { .. } => None,
        }
    }

    fn go_on(&self, fd: RawFd, events: u32) -> Step {
        let result = match self.purpose {
            Purpose::Poll { is_multi: true } => return Step::GoesOn(events.cast_signed()),
            Purpose::Poll { is_multi: false } => events.cast_signed(),
            Purpose::Accept => socket::accept(fd),
            Purpose::Connect { was_blocking } => socket::end_connect(fd, was_blocking),
            // SAFETY: it is in flight, so that its memory is as `Ring::push` promises.
            Purpose::Stream(stream) => unsafe { socket::transfer_now(stream) },
        };
        match (-result, self.purpose) {
            // Another was faster.
            (libc::EAGAIN, _) => Step::Waits,
            // Not for such a file, not on such a kernel, or not in this sandbox.
            (libc::EOPNOTSUPP | libc::ENOSYS | libc::EPERM, Purpose::Stream(it)) => {
                Step::Blocks(it.operation())
            }
            _ => Step::Ends(result),
        }
    }
}

impl Found {
    pub(super) fn complete(&mut self, user_data: u64, result: i32) {
        self.post(user_data, result, false);
    }

    fn post(&mut self, user_data: u64, result: i32, has_more: bool) {
        let completion = Completion::made(user_data, result, has_more);
        self.completions.push(completion);
    }
}

/// For a call that takes a number and has an error for one that is not open.
fn borrowed(fd: RawFd) -> BorrowedFd<'static> {
    // SAFETY: it is not -1, as `register` comes first, and used for one call of epoll, which refuses what
    // is not open. That the number is of the file that is meant, the submission promises.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

/// Of numbers that this process has given out: spread is all that is needed.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(number.cast_unsigned().into());
    }

    fn write_u64(&mut self, number: u64) {
        // 2⁶⁴ by the golden ratio (Knuth, TAOCP 6.4).
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// The map takes the first bits and the last.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}
