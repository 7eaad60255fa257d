//! Timers that all have the same duration, as the read timeouts of a server's sockets do, armed
//! while time passes.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::generator::Rng;

use super::basics::per;
use super::{expire_all, is_astray};
use crate::figures::{Figure, Figures, figures};
use crate::queues::TimerQueue;
use crate::workload::wakers;

/// The duration of all of them.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Nanoseconds to renew any timer by re-arming it, to cancel any timer and arm it anew, and to fire
/// one in polls every millisecond.
pub fn run<Q: TimerQueue>(timers: usize) -> Figures {
    let epoch = Q::epoch();
    let mut now = epoch;
    let mut queue = Q::new(epoch);
    let mut handles = Vec::with_capacity(timers);
    for waker in wakers(timers) {
        now += STEP;
        handles.push(Some(queue.insert(now + TIMEOUT, waker)));
    }
    let mut random = Rng::with_seed(9);
    let victims: Vec<u32> = (0..OPERATIONS)
        .map(|_| random.usize(..timers) as u32)
        .collect();
    queue.lay_in(4 * OPERATIONS);
    let mut renew = |queue: &mut Q, renew: fn(&mut Q, Q::Handle, Instant) -> Q::Handle| {
        let mut elapsed = Duration::ZERO;
        // The first time warms up.
        for _ in 0..2 {
            let begin = Instant::now();
            for &victim in &victims {
                now += STEP;
                let place = &mut handles[victim as usize];
                let handle = place.take().expect("put back each time");
                *place = Some(renew(queue, handle, black_box(now + TIMEOUT)));
            }
            elapsed = begin.elapsed();
        }
        per(elapsed, OPERATIONS)
    };
    let mut measured = figures([
        renew(&mut queue, Q::rearm),
        renew(&mut queue, |queue, handle, deadline| {
            let waker = queue.cancel(handle).expect("armed");
            queue.insert(deadline, waker)
        }),
    ]);

    let (begin, end) = (epoch + TIMEOUT, now + TIMEOUT);
    let mut expired = Vec::with_capacity(timers);
    let mut in_polls = Duration::ZERO;
    // Those that round deadlines up fire the last a tick or two later.
    while now < end + 2 * POLL {
        now += POLL;
        queue.advance(now);
        let polled = Instant::now();
        expire_all(&mut queue, now, &mut expired);
        // Before any is due they cost the polls of an idle executor, which have a row of their own.
        if now >= begin {
            in_polls += polled.elapsed();
        }
    }
    measured.push(Some(Figure {
        value: per(in_polls, timers),
        is_astray: is_astray::<Q>(expired.len(), timers),
    }));
    measured
}

const OPERATIONS: usize = 100_000;

/// Between two operations: a million of them a second.
const STEP: Duration = Duration::from_micros(1);

/// Between two polls.
const POLL: Duration = Duration::from_millis(1);
