//! Polls with a batch of many timers due, and timers that all have the same duration, as the read timeouts of a
//! server's sockets do.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::generator::Rng;

use super::{Figures, expire_all, per};
use crate::clock::{Cycles, between, cycles, ns};
use crate::queues::TimerQueue;
use crate::workload::{Rotation, wakers};

/// Nanoseconds to a timer in the poll, the same with the release of the handles, and cycles to a timer in the poll, p50,
/// p99 and p999 of the polls. What is measured begins with the second time that each of the timers fires.
pub fn in_batches<Q: TimerQueue>(timers: usize, batch: usize) -> Figures {
    let mut rotation = Rotation::<Q>::new(timers, batch);
    let mut polls = Cycles::new();
    let (mut in_polls, mut in_releases, mut fired) = (0, 0, 0);
    let warm_up = timers / batch;
    let measured = MEASURED.max(timers) / batch;
    for poll in 0..warm_up + measured {
        let now = rotation.advance();
        let begin = cycles();
        rotation.expire(now);
        let polled = cycles();
        rotation.release();
        let end = cycles();
        let expired = rotation.arm();
        if poll >= warm_up {
            polls.record(begin, polled);
            in_polls += between(begin, polled);
            in_releases += between(polled, end);
            fired += expired;
        }
    }
    let per_timer = |cycles: u64| ns(cycles) / fired as f64;
    let quantile = |part| polls.quantile(part) as f64 / batch as f64;
    let figures = [
        per_timer(in_polls),
        per_timer(in_polls + in_releases),
        quantile(0.5),
        quantile(0.999),
    ];
    Figures::of_polls::<Q>(&figures, fired, measured * batch)
}

/// Timers that fire while it is measured.
const MEASURED: usize = 100_000;

/// The duration of all of them.
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// Timers armed while time passes: nanoseconds to renew any timer by re-arming it, to cancel any timer and arm it anew, and to fire
/// one in polls every millisecond.
pub fn one_duration<Q: TimerQueue>(timers: usize) -> Figures {
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
    let renewed = renew(&mut queue, Q::rearm);
    let again = renew(&mut queue, |queue, handle, deadline| {
        let waker = queue.cancel(handle).expect("armed");
        queue.insert(deadline, waker)
    });

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
    let figures = [renewed, again, per(in_polls, timers)];
    Figures::of_polls::<Q>(&figures, expired.len(), timers)
}

const OPERATIONS: usize = 100_000;

/// Between two operations: a million of them a second.
const STEP: Duration = Duration::from_micros(1);

/// Between two polls.
const POLL: Duration = Duration::from_millis(1);
