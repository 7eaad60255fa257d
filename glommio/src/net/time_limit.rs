//! How long operations of one direction of a socket may wait.
//!
//! ```text
//!          the operation has to wait
//!   Idle ─────────────────────────────▶ Running { deadline, waker } ──over──▶ error, Idle
//!    ▲                                      │      │  ▲
//!    └──────────── progress ────────────────┘      └──┘ abandoned: a new period
//! ```
//!
//! A period belongs to one wait, but nobody says that a wait was given up: a future that reads simply
//! polls no more. A wait counts as abandoned when
//!
//! - another task polls: its wait is a new one;
//! - the alarm went off, everybody whom it woke has run, and the socket was not polled in that time:
//!   had the task still waited, it would have come.
//!
//! A task that begins a new wait before its abandoned one is due, or in the very round in which that
//! one's alarm went off, cannot be told from one that has waited all along.
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
    period: Option<Period>,
}

/// One wait, from its beginning to its deadline. Dropping it takes the alarm back.
#[derive(Debug)]
pub(super) struct Period {
    deadline: Instant,
    /// Who waits. The alarm forgets its waker when it goes off.
    waker: Waker,
    alarm: Alarm,
}

impl TimeLimit {
    pub(super) fn new(length: Option<Duration>) -> Self {
        TimeLimit {
            length,
            period: None,
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
    ) -> Option<Period> {
        // A wait that has timed out leaves its readiness poll under way for the next, but nobody waits
        // then: a period begun here would be taken for that of the wait to come.
        let is_waiting = self.length.is_none() || self.period.is_some();
        self.length = length;
        let waiting = waiting.filter(|_| is_waiting);
        let period = length.zip(waiting).map(|(length, waker)| {
            let deadline = deadline_after(Instant::now(), length);
            Period::start(deadline, waker, reactor)
        });
        std::mem::replace(&mut self.period, period)
    }

    /// The operation has to wait: whether it has waited long enough. Else its task is woken when it
    /// has.
    pub(super) fn is_over(&mut self, reactor: &Weak<Reactor>, cx: &Context<'_>) -> bool {
        let Some(length) = self.length else {
            return false;
        };
        let now = Instant::now();
        if let Some(period) = &self.period
            && period.waker.will_wake(cx.waker())
        {
            if now < period.deadline {
                return false;
            }
            if !period.alarm.was_ignored(period.deadline) {
                return true;
            }
        }
        let deadline = deadline_after(now, length);
        self.period = Some(Period::start(deadline, cx.waker().clone(), reactor));
        false
    }

    /// The operation made progress, or failed.
    pub(super) fn stop(&mut self) {
        self.period = None;
    }
}

impl Period {
    fn start(deadline: Instant, waker: Waker, reactor: &Weak<Reactor>) -> Self {
        let mut alarm = Alarm::new(reactor.clone());
        alarm.set(deadline, &waker);
        Period {
            deadline,
            waker,
            alarm,
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
