//! Arming and cancelling without the model: nothing but the library, as fast as it goes.
//!
//! What the library has dropped shows all the same: each timer held a share of one token.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use glommio::timer::Timer;
use support::generator::Rng;

use super::spread::Deadlines;
use crate::check::checker::Checker;
use crate::check::executor_stats::ExecutorStats;
use crate::check::invariants::Invariant;

/// The unmodelled part of a burst.
pub(super) struct Raw {
    checker: Rc<Checker>,
    timers: Vec<Timer>,
    /// The waker within. Each timer that waits has a share of it.
    token: Arc<Token>,
    waker: Waker,
    armed: u64,
    rearmed: u64,
}

/// A waker that must not be called: its timers are seconds ahead, and cancelled before the reactor
/// has a turn.
struct Token(Arc<ExecutorStats>);

impl Wake for Token {
    fn wake(self: Arc<Self>) {
        self.0.ledger.holds(Invariant::CancelsHold, false, || {
            "a waker was called whose timers were cancelled".to_owned()
        });
    }
}

impl Raw {
    pub(super) fn begin(checker: &Rc<Checker>) -> Self {
        let token = Arc::new(Token(Arc::clone(&checker.stats)));
        Raw {
            checker: Rc::clone(checker),
            timers: Vec::with_capacity(ARMED_MAX),
            waker: Waker::from(Arc::clone(&token)),
            token,
            armed: 0,
            rearmed: 0,
        }
    }

    /// Some thousand timers: armed, a few of them moved, all of them cancelled, in one of three
    /// orders.
    pub(super) fn churn(&mut self, rng: &mut Rng, deadlines: &mut Deadlines) {
        let count = 1 + rng.usize(..ARMED_MAX);
        let mut cx = Context::from_waker(&self.waker);
        for _ in 0..count {
            let mut timer = Timer::new(until(deadlines.draw_far(rng)));
            let polled = Pin::new(&mut timer).poll(&mut cx);
            debug_assert_eq!(polled, Poll::Pending, "it is seconds ahead");
            self.timers.push(timer);
        }
        let moved = rng.usize(..count);
        for timer in &mut self.timers[..moved] {
            timer.reset(until(deadlines.draw_far(rng)));
        }
        match rng.u64(..3) {
            // First in, first out.
            0 => self.timers.drain(..).for_each(drop),
            1 => self.timers.drain(..).rev().for_each(drop),
            _ => {
                while !self.timers.is_empty() {
                    drop(self.timers.swap_remove(rng.usize(..self.timers.len())));
                }
            }
        }
        self.armed += count as u64;
        self.rearmed += moved as u64;
    }

    /// Enters what was done, and judges that nothing is left of it.
    pub(super) fn end(self) {
        let gauges = &self.checker.stats.gauges;
        gauges.armed.fetch_add(self.armed, Ordering::Relaxed);
        gauges.cancelled.fetch_add(self.armed, Ordering::Relaxed);
        gauges.rearmed.fetch_add(self.rearmed, Ordering::Relaxed);
        drop(self.waker);
        let left = Arc::strong_count(&self.token) - 1;
        self.checker.check(Invariant::LiveTimers, left as u64, || {
            format!("{left} wakers outlive {} cancelled timers", self.armed)
        });
    }
}

fn until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// About half a millisecond's worth.
const ARMED_MAX: usize = 2_048;
