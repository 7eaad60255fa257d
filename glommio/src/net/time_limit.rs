//! How long operations of one direction of a socket may wait.
//!
//! ```text
//!          the operation has to wait
//!   Idle ─────────────────────────────▶ Running { deadline } ──over──▶ error, Idle
//!    ▲                                      │      │  ▲
//!    └──────────── progress ────────────────┘      └──┘ abandoned: a new period
//! ```
//!
//! Progress leaves the alarm where it is: the next wait moves it, which is all that a wait costs. One
//! that nobody moves goes off and wakes its task once for nothing.
//!
//! A period belongs to one wait, but nobody says that a wait was given up: a future that reads simply
//! polls no more. A wait counts as abandoned, and the one that follows as new, when
//!
//! - another task polls;
//! - the alarm went off, everybody whom it woke has run, and the socket was not polled in that time:
//!   had the task still waited, it would have come.
//!
//! The same task polling again before the deadline may go on with its wait, beside other things that
//! wake it, or begin a new one. If it did, the period is prolonged when it is over, as for a wait that
//! began then; but only once, or a wait beside something frequent would never end. So a wait ends not
//! before its time, and after no more than twice of it.
//!
//! Where each wait is a future with a limit of its own, as with datagrams, nothing is guessed.
//!
//! A task that begins a new wait in the very round in which the alarm of its abandoned one went off
//! cannot be told from one that has waited all along.
//!
//! The clock is looked at only when an operation finds the socket not ready.

#![forbid(unsafe_code)]

use std::rc::Weak;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use crate::reactor::{Alarm, Reactor, deadline_after};

/// The timeout of one direction, and the period that runs.
#[derive(Debug)]
pub(super) struct TimeLimit {
    length: Option<Duration>,
    /// It belongs to one future, and is dropped with it.
    is_of_one_wait: bool,
    /// When the wait under way has taken too long.
    deadline: Option<Instant>,
    /// When the waiting task last polled again, which may have been the beginning of a new wait.
    polled_again: Option<Instant>,
    is_prolonged: bool,
    /// Set to the deadline, or to that of an earlier wait. There is one once somebody has waited.
    alarm: Option<Bell>,
}

/// How a wait stands to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Within,
    /// The limit has passed, but another period has begun.
    Anew,
    Over,
}

/// An alarm that knows whom it wakes, also once it has gone off.
#[derive(Debug)]
pub(super) struct Bell {
    alarm: Alarm,
    waker: Waker,
}

impl TimeLimit {
    /// The limit of whatever waits there will be; none for now.
    pub(super) fn new() -> Self {
        TimeLimit {
            length: None,
            is_of_one_wait: false,
            deadline: None,
            polled_again: None,
            is_prolonged: false,
            alarm: None,
        }
    }

    /// The limit of one wait, of which nothing has to be guessed.
    pub(super) fn of_one_wait(length: Option<Duration>) -> Self {
        TimeLimit {
            length,
            is_of_one_wait: true,
            ..TimeLimit::new()
        }
    }

    pub(super) fn length(&self) -> Option<Duration> {
        self.length
    }

    /// Changes the timeout, also of the wait of `waiting`, if there is one: a new period starts now.
    ///
    /// Returns what is to be dropped with nothing borrowed, since it holds wakers.
    #[must_use = "dropping it runs code of wakers"]
    pub(super) fn set_length(
        &mut self,
        length: Option<Duration>,
        reactor: &Weak<Reactor>,
        waiting: Option<Waker>,
    ) -> Option<Bell> {
        // A wait that has timed out leaves its readiness poll under way for the next, but nobody waits
        // then: a period begun here would be taken for that of the wait to come.
        let is_waiting = self.length.is_none() || self.deadline.is_some();
        self.length = length;
        self.deadline = None;
        self.polled_again = None;
        self.is_prolonged = false;
        let replaced = self.alarm.take();
        if let Some((length, waker)) = length.zip(waiting.filter(|_| is_waiting)) {
            self.begin(deadline_after(Instant::now(), length), reactor, &waker);
        }
        replaced
    }

    /// The operation has to wait. Its task is woken when it has waited long enough.
    pub(super) fn look(&mut self, reactor: &Weak<Reactor>, cx: &Context<'_>) -> Standing {
        let Some(length) = self.length else {
            return Standing::Within;
        };
        let now = Instant::now();
        if let Some(deadline) = self.deadline
            && self.is_of_one_wait
        {
            if now >= deadline {
                return Standing::Over;
            }
            self.begin(deadline, reactor, cx.waker());
            return Standing::Within;
        }
        let mut standing = Standing::Within;
        let mut begins_at = now;
        if let Some((deadline, bell)) = self.deadline.zip(self.alarm.as_ref())
            && bell.waker.will_wake(cx.waker())
        {
            if now < deadline {
                self.polled_again = Some(now);
                return Standing::Within;
            }
            standing = Standing::Anew;
            if bell.alarm.was_ignored(deadline) {
                self.is_prolonged = false;
            } else {
                match self.polled_again {
                    Some(again) if !self.is_prolonged => begins_at = again,
                    _ => return Standing::Over,
                }
                self.is_prolonged = true;
            }
        } else {
            self.is_prolonged = false;
        }
        self.polled_again = None;
        self.begin(deadline_after(begins_at, length), reactor, cx.waker());
        standing
    }

    /// The operation made progress, or failed.
    pub(super) fn stop(&mut self) {
        self.deadline = None;
    }

    fn begin(&mut self, deadline: Instant, reactor: &Weak<Reactor>, waker: &Waker) {
        self.deadline = Some(deadline);
        match &mut self.alarm {
            Some(bell) if bell.waker.will_wake(waker) => {
                if !bell.alarm.postpone(deadline) {
                    bell.alarm.set(deadline, waker);
                }
            }
            alarm => {
                let mut bell = Bell {
                    alarm: Alarm::new(reactor.clone()),
                    waker: waker.clone(),
                };
                bell.alarm.set(deadline, waker);
                *alarm = Some(bell);
            }
        }
    }
}

/// The timeout to set, or why not.
pub(super) fn checked(length: Option<Duration>) -> std::io::Result<Option<Duration>> {
    match length {
        // As `setsockopt` would have it, where zero means "for ever".
        Some(Duration::ZERO) => Err(std::io::Error::from_raw_os_error(libc::EINVAL)),
        length => Ok(length),
    }
}
