//! What the running task waits for, noted by the futures that it polls: the feature `debugging`.
//!
//! A future that has to wait says for what, by [`waits_for`]. The notes of a poll are kept in a
//! thread-local, and become those of the task when its poll is over. A note is a copy of numbers, which
//! mean something only to the look that is taken at them later, and are never followed: what they
//! stand for may be gone by then.
//!
//! Without the feature there is nothing here: functions do nothing, and [`Holder`] has no size.

#![forbid(unsafe_code)]

use std::os::fd::RawFd;
use std::task::Poll;
use std::time::Instant;

/// What a future waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "debugging"),
    expect(dead_code, reason = "made by closures that are not called")
)]
pub(crate) enum Awaited {
    /// An operation of the reactor, by its key.
    Operation {
        index: u32,
        generation: u32,
    },
    /// Data that the socket receives.
    Data(RawFd),
    /// A connection of that listener.
    Connection(RawFd),
    Deadline(Instant),
    /// A task of the same thread.
    Task(u64),
    /// A lock, as [`Holder::awaited`] has it.
    Lock {
        place: usize,
        number: u64,
    },
    /// The end of a channel, which others know by its address.
    Channel {
        what: &'static str,
        address: usize,
    },
    BlockingCall,
    Other(&'static str),
}

/// Notes what is waited for, if it is.
#[inline(always)]
pub(crate) fn waits_for<R>(polled: Poll<R>, awaited: impl FnOnce() -> Awaited) -> Poll<R> {
    if cfg!(feature = "debugging") && polled.is_pending() {
        waiting(awaited);
    }
    polled
}

/// Notes what is waited for.
#[inline(always)]
pub(crate) fn waiting(awaited: impl FnOnce() -> Awaited) {
    #[cfg(feature = "debugging")]
    note(awaited());
    #[cfg(not(feature = "debugging"))]
    let _ = awaited;
}

/// As [`waits_for`], for one end of what lies at the address of `at`.
#[inline(always)]
pub(crate) fn waits_at<R, T: ?Sized>(polled: Poll<R>, what: &'static str, at: &T) -> Poll<R> {
    waits_for(polled, || Awaited::Channel {
        what,
        address: (&raw const *at).addr(),
    })
}

#[cfg(feature = "debugging")]
mod here {
    use std::cell::{Cell, RefCell};
    use std::panic::Location;
    use std::time::Instant;

    use slab::Slab;

    use super::Awaited;
    use crate::clock;

    /// Notes that are kept of one poll.
    pub(crate) const MOST: usize = 4;

    /// Notes of polls inside each other.
    const ROOM: usize = 8 * MOST;

    thread_local! {
        // Without a destructor, so that tasks can be polled for as long as there is a thread.
        static HERE: Here = const {
            Here {
                task: Cell::new(0),
                begin: Cell::new(0),
                end: Cell::new(0),
                notes: [const { Cell::new(Awaited::BlockingCall) }; ROOM],
                now: Cell::new(None),
                spawned_at: Cell::new(None),
            }
        };

        static LOCKS: RefCell<Slab<Lock>> = const { RefCell::new(Slab::new()) };
    }

    struct Here {
        /// The task that is being polled, or zero.
        task: Cell<u64>,
        /// Its notes. Those that there is no room for are counted.
        begin: Cell<usize>,
        end: Cell<usize>,
        notes: [Cell<Awaited>; ROOM],
        now: Cell<Option<Instant>>,
        spawned_at: Cell<Option<&'static Location<'static>>>,
    }

    /// A lock that tasks have waited for or held.
    #[derive(Clone, Copy)]
    pub(crate) struct Lock {
        pub(crate) what: &'static str,
        /// No other lock of the thread has or had it.
        pub(crate) number: u64,
        /// How many guards there are.
        guards: u32,
        /// The task that has got the only one.
        pub(crate) holder: Option<u64>,
    }

    #[inline]
    pub(crate) fn note(awaited: Awaited) {
        HERE.with(|here| {
            let (begin, end) = (here.begin.get(), here.end.get());
            let notes = here.notes.get(begin..end.min(ROOM)).unwrap_or_default();
            if here.task.get() == 0 || notes.iter().any(|it| it.get() == awaited) {
                return;
            }
            if notes.len() < MOST
                && let Some(next) = here.notes.get(end)
            {
                next.set(awaited);
            }
            here.end.set(end + 1);
        });
    }

    /// A poll during which notes are those of its task.
    pub(crate) struct NotedPoll {
        outer_task: u64,
        outer_begin: usize,
    }

    impl NotedPoll {
        #[inline]
        pub(crate) fn begin(task: u64) -> Self {
            HERE.with(|here| NotedPoll {
                outer_task: here.task.replace(task),
                outer_begin: here.begin.replace(here.end.get()),
            })
        }

        /// Ends it. Gives the notes to `keep`, and returns how many there were.
        #[inline]
        pub(crate) fn end(&self, mut keep: impl FnMut(usize, Awaited)) -> usize {
            HERE.with(|here| {
                here.task.set(self.outer_task);
                let begin = here.begin.replace(self.outer_begin);
                let end = here.end.replace(begin);
                let notes = here.notes.get(begin..end.min(ROOM)).unwrap_or_default();
                for (place, awaited) in notes.iter().take(MOST).enumerate() {
                    keep(place, awaited.get());
                }
                end - begin
            })
        }
    }

    /// What happens from here on happens now, unless a round says when.
    pub(crate) fn set_now() {
        begin_round(clock::real());
    }

    /// What the clock said when the round began: it is not read for what happens in the round.
    pub(crate) fn begin_round(now: Instant) {
        HERE.with(|here| here.now.set(Some(now)));
    }

    #[inline]
    pub(crate) fn now() -> Instant {
        HERE.with(|here| here.now.get()).unwrap_or_else(clock::real)
    }

    /// The next task is spawned where this is called.
    #[track_caller]
    pub(crate) fn spawns_here() {
        let caller = Location::caller();
        HERE.with(|here| here.spawned_at.set(Some(caller)));
    }

    /// Where the task is spawned, unless the runtime does that by itself.
    pub(crate) fn take_spawned_at() -> Option<&'static Location<'static>> {
        HERE.with(|here| here.spawned_at.take())
    }

    /// The lock that was noted, if it is there yet.
    pub(crate) fn lock(place: usize, number: u64) -> Option<Lock> {
        let lock = |locks: &RefCell<Slab<Lock>>| locks.borrow().get(place).copied();
        let found = LOCKS.try_with(lock).ok().flatten();
        found.filter(|it| it.number == number)
    }

    /// Knows which task holds a lock, if one alone does.
    #[derive(Debug)]
    pub(crate) struct Holder {
        what: &'static str,
        /// Where it is among the locks, and its number, once that was asked for.
        name: Cell<Option<(usize, u64)>>,
    }

    impl Holder {
        pub(crate) const fn of(what: &'static str) -> Self {
            Holder {
                what,
                name: Cell::new(None),
            }
        }

        /// The running task has got a guard.
        #[inline]
        pub(crate) fn taken(&self) {
            let task = HERE.with(|here| here.task.get());
            self.with(|lock| {
                lock.guards += 1;
                lock.holder = Some(task).filter(|&task| lock.guards == 1 && task != 0);
            });
        }

        /// A guard is dropped. Of two, it cannot be told which is left.
        #[inline]
        pub(crate) fn given_back(&self) {
            self.with(|lock| {
                lock.guards = lock.guards.saturating_sub(1);
                lock.holder = None;
            });
        }

        pub(crate) fn awaited(&self) -> Awaited {
            self.with(|_| ());
            let (place, number) = self.name.get().unwrap_or_default();
            Awaited::Lock { place, number }
        }

        #[inline]
        fn with(&self, change: impl FnOnce(&mut Lock)) {
            // Where the thread ends, no look is taken any more.
            let _ = LOCKS.try_with(|locks| {
                let mut locks = locks.borrow_mut();
                let (place, _) = self.name.get().unwrap_or_else(|| self.register(&mut locks));
                if let Some(lock) = locks.get_mut(place) {
                    change(lock);
                }
            });
        }

        #[cold]
        fn register(&self, locks: &mut Slab<Lock>) -> (usize, u64) {
            thread_local! {
                static LAST: Cell<u64> = const { Cell::new(0) };
            }
            LAST.set(LAST.get() + 1);
            let number = LAST.get();
            let place = locks.insert(Lock {
                what: self.what,
                number,
                guards: 0,
                holder: None,
            });
            self.name.set(Some((place, number)));
            (place, number)
        }
    }

    impl Drop for Holder {
        fn drop(&mut self) {
            if let Some((place, _)) = self.name.get() {
                let _ = LOCKS.try_with(|locks| locks.borrow_mut().try_remove(place));
            }
        }
    }
}

/// Without the feature.
#[cfg(not(feature = "debugging"))]
mod here {
    #[inline(always)]
    pub(crate) fn set_now() {}

    #[inline(always)]
    pub(crate) fn begin_round(_: std::time::Instant) {}

    #[inline(always)]
    pub(crate) fn spawns_here() {}

    #[derive(Debug)]
    pub(crate) struct Holder;

    impl Holder {
        pub(crate) const fn of(_: &'static str) -> Self {
            Holder
        }

        #[inline(always)]
        pub(crate) fn taken(&self) {}

        #[inline(always)]
        pub(crate) fn given_back(&self) {}

        pub(crate) fn awaited(&self) -> super::Awaited {
            super::Awaited::BlockingCall
        }
    }
}

pub(crate) use here::*;
