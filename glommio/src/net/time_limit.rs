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

#[derive(Debug)]
struct Period {
    deadline: Instant,
    /// Who waits. The alarm forgets its waker when it goes off.
    waker: Waker,
    alarm: Alarm,
}

/// What a period leaves behind; to be dropped with nothing borrowed, since it holds wakers.
#[must_use = "dropping it runs code of wakers"]
pub(super) struct EndedPeriod(
    #[expect(dead_code, reason = "kept for its destructor")] Option<Period>,
);

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

    /// Changes the timeout, also of the wait under way, whose new period starts now.
    pub(super) fn set_length(&mut self, length: Option<Duration>) -> EndedPeriod {
        self.length = length;
        let Some(length) = length else {
            return EndedPeriod(self.period.take());
        };
        if let Some(period) = &mut self.period {
            period.deadline = deadline_after(Instant::now(), length);
            if !period.alarm.postpone(period.deadline) {
                // It has gone off. Whoever waits was woken, and finds the new deadline to come; then
                // it must be woken for that one.
                period.alarm.set(period.deadline, &period.waker);
            }
        }
        EndedPeriod(None)
    }

    /// The operation has to wait: whether it has waited long enough. Else its task is woken when it
    /// has.
    pub(super) fn is_over(&mut self, reactor: &Weak<Reactor>, cx: &Context<'_>) -> bool {
        let Some(length) = self.length else {
            return false;
        };
        let now = Instant::now();
        if let Some(period) = &mut self.period {
            if period.waker.will_wake(cx.waker()) {
                if now < period.deadline {
                    return false;
                }
                if !period.alarm.was_ignored(period.deadline) {
                    return true;
                }
            }
            period.restart(deadline_after(now, length), cx.waker());
            return false;
        }
        let mut period = Period {
            deadline: now,
            waker: cx.waker().clone(),
            alarm: Alarm::new(reactor.clone()),
        };
        period.restart(deadline_after(now, length), cx.waker());
        self.period = Some(period);
        false
    }

    /// The operation made progress, or failed.
    pub(super) fn stop(&mut self) -> EndedPeriod {
        EndedPeriod(self.period.take())
    }
}

impl Period {
    fn restart(&mut self, deadline: Instant, waker: &Waker) {
        self.deadline = deadline;
        self.waker.clone_from(waker);
        self.alarm.set(deadline, waker);
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
