//! How long operations of one direction of a socket may wait.
//!
//! ```text
//!          the operation has to wait
//!   Idle ─────────────────────────────▶ Waiting { deadline } ──over──▶ error, Idle
//!    ▲                                      │        │  ▲
//!    └──────────── progress ────────────────┘        └──┘ given up: a new deadline
//! ```
//!
//! A timer is armed as long as an operation waits; it wakes the task at the deadline.
//!
//! A wait is given up by not polling it any more: a dropped future says nothing to the socket. So
//! each look at a wait that is not over has to tell whether it goes on or a new one begins. It goes
//! on if
//!
//! - it was looked at in this poll of the task, or in the one before: the task has polled it each
//!   time; or
//! - the waker is not the task's own, is the same as before, and the wait has not slept through its
//!   deadline. Such a waker is that of a part of the task, such as a future in a
//!   `FuturesUnordered`, which is not polled each time. It would have been when the timer woke it:
//!   if that has expired, every task that was woken has run, and there was no look, the part does
//!   not wait any more.
//!
//! Else the task has left the wait out in a whole poll of its own: it was given up. So it was if the
//! task has slept since it looked at the wait, and did not look before the sleep was over: what goes
//! on beside a sleep is looked at before, or was so after the sleep had begun. Only a task that polls
//! in random order may do otherwise. So this counts once for each wait, or such a task, with many
//! sleeps, would wait for a silent peer forever.
//!
//! An operation that is dropped and begun anew without anything of this kind between looks like one
//! that went on, and continues its wait. A loop that waits for other things besides, and begins to
//! read anew each time, relies on it: it would wait for a silent peer forever.
//!
//! Where each wait is a future with a limit of its own, as with datagrams, there is nothing to tell
//! apart.
//!
//! The clock is looked at only when an operation finds the socket not ready.

#![forbid(unsafe_code)]

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::rc::Weak;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::clock;
use crate::noted::{Awaited, waiting};
use crate::reactor::{Reactor, TaskPoll, TimerEntry, deadline_after, executor_is_gone};

/// Waits for `length`, as long as the executor is there.
pub(super) async fn pause(reactor: &Weak<Reactor>, length: Duration) -> io::Result<()> {
    let deadline = deadline_after(clock::now(), length);
    let mut timer = TimerEntry::new(reactor.clone());
    poll_fn(|cx| {
        if reactor.upgrade().is_none() {
            return Poll::Ready(Err(executor_is_gone()));
        }
        if timer.is_past_or_arm(deadline, cx.waker()) {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    })
    .await
}

/// The timeout of one direction, and the wait under way.
#[derive(Debug)]
pub(super) struct TimeLimit {
    length: Option<Duration>,
    /// It belongs to one future, and is dropped with it.
    is_of_one_wait: bool,
    /// In which poll of a task there was last a wait, with or without a limit; none after
    /// progress.
    polled_in: Option<u32>,
    /// The number of the last look at a wait with a limit.
    looked: u32,
    /// It was taken for given up since the task has slept, and began anew.
    has_begun_anew: bool,
    /// When the wait has taken too long.
    deadline: Option<Instant>,
    /// Armed for the deadline, until it expires.
    deadline_waker: Option<DeadlineWaker>,
}

/// A timer that knows which task it wakes, also once it has expired.
#[derive(Debug)]
pub(super) struct DeadlineWaker {
    timer: TimerEntry,
    waker: Waker,
}

impl TimeLimit {
    /// The limit of whatever waits there will be; none for now.
    pub(super) fn new() -> Self {
        TimeLimit {
            length: None,
            is_of_one_wait: false,
            polled_in: None,
            looked: 0,
            has_begun_anew: false,
            deadline: None,
            deadline_waker: None,
        }
    }

    /// The limit of one wait.
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

    /// Changes the timeout, also of a wait under way, of which `waiting` is the waker: a new period
    /// starts now.
    ///
    /// Returns what is to be dropped with nothing borrowed, since it holds wakers.
    #[must_use = "dropping it runs code of wakers"]
    pub(super) fn set_length(
        &mut self,
        length: Option<Duration>,
        reactor: &Weak<Reactor>,
        waiting: Option<Waker>,
    ) -> Option<DeadlineWaker> {
        self.length = length;
        self.deadline = None;
        // It goes on from here, whatever the task has done since the last look.
        self.looked = u32::MAX;
        let replaced = self.deadline_waker.take();
        // A wait that has timed out leaves its readiness poll under way for the next: it has a
        // waker then, and nothing waits.
        if self.polled_in.is_some()
            && let Some((length, waker)) = length.zip(waiting)
        {
            self.begin(deadline_after(clock::now(), length), reactor, &waker);
        }
        replaced
    }

    /// The operation has to wait. True if it has done so for long enough; else its task is woken
    /// when it has.
    pub(super) fn is_over(&mut self, reactor: &Weak<Reactor>, cx: &Context<'_>) -> bool {
        let poll = poll_under_way(reactor);
        let goes_on = self.goes_on(poll, cx.waker());
        self.look(goes_on, poll, reactor, cx)
    }

    /// As [`is_over`](Self::is_over), of an operation that was polled in vain and may be a new one:
    /// a wait under way goes on, and none begins.
    pub(super) fn is_over_if_waiting(&mut self, reactor: &Weak<Reactor>, cx: &Context<'_>) -> bool {
        let poll = poll_under_way(reactor);
        self.goes_on(poll, cx.waker()) && self.look(true, poll, reactor, cx)
    }

    fn look(
        &mut self,
        goes_on: bool,
        poll: TaskPoll,
        reactor: &Weak<Reactor>,
        cx: &Context<'_>,
    ) -> bool {
        let begins_anew = !goes_on && self.deadline.is_some() && self.was_polled(poll);
        self.polled_in = Some(poll.number());
        let Some(length) = self.length else {
            return false;
        };
        self.looked = reactor.upgrade().map_or(0, |it| it.polls().look());
        let now = clock::now();
        match self.deadline {
            Some(deadline) if goes_on => {
                if now >= deadline {
                    return true;
                }
                if !self.wakes(cx.waker()) {
                    self.begin(deadline, reactor, cx.waker());
                }
            }
            _ => {
                self.has_begun_anew = begins_anew;
                self.begin(deadline_after(now, length), reactor, cx.waker());
            }
        }
        waiting(|| Awaited::Deadline(self.deadline.unwrap_or(now)));
        false
    }

    /// The operation made progress, or failed.
    pub(super) fn stop(&mut self) {
        self.polled_in = None;
        self.has_begun_anew = false;
        if self.deadline.take().is_some()
            && let Some(it) = &mut self.deadline_waker
        {
            it.timer.disarm();
        }
    }

    /// Whether there is a wait, and it is what `waker` waits for in `poll`.
    fn goes_on(&self, poll: TaskPoll, waker: &Waker) -> bool {
        let Some(deadline) = self.deadline else {
            return false;
        };
        if self.is_of_one_wait {
            return true;
        }
        if self.was_polled(poll) {
            let has_slept = || poll.is_of(waker) && poll.has_slept_since(self.looked);
            let is_same_poll = self.polled_in == Some(poll.number());
            return is_same_poll || self.has_begun_anew || !has_slept();
        }
        let slept_through = |it: &DeadlineWaker| it.timer.was_ignored(deadline);
        !poll.is_of(waker)
            && self.wakes(waker)
            && !self.deadline_waker.as_ref().is_some_and(slept_through)
    }

    /// Whether there was a look at a wait in `poll`, or in the one before of the same task.
    fn was_polled(&self, poll: TaskPoll) -> bool {
        self.polled_in
            .is_some_and(|earlier| poll.is_or_follows(earlier))
    }

    /// Whether the timer, armed or expired, is one that wakes `waker`.
    fn wakes(&self, waker: &Waker) -> bool {
        let known = self.deadline_waker.as_ref();
        known.is_some_and(|it| it.waker.will_wake(waker))
    }

    fn begin(&mut self, deadline: Instant, reactor: &Weak<Reactor>, waker: &Waker) {
        self.deadline = Some(deadline);
        match &mut self.deadline_waker {
            Some(it) if it.waker.will_wake(waker) => it.timer.arm(deadline, waker),
            it => {
                let mut timer = TimerEntry::new(reactor.clone());
                timer.arm(deadline, waker);
                *it = Some(DeadlineWaker {
                    timer,
                    waker: waker.clone(),
                });
            }
        }
    }
}

fn poll_under_way(reactor: &Weak<Reactor>) -> TaskPoll {
    let reactor = reactor.upgrade();
    reactor.map_or_else(TaskPoll::default, |it| it.polls().under_way())
}

/// The timeout to set, or why not.
pub(super) fn checked(length: Option<Duration>) -> std::io::Result<Option<Duration>> {
    match length {
        // As `setsockopt` would have it, where zero means "forever".
        Some(Duration::ZERO) => Err(std::io::Error::from_raw_os_error(libc::EINVAL)),
        length => Ok(length),
    }
}
