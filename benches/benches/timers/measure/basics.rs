//! Arm, arm and cancel, re-arm and ask, by the batch.

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::generator::Rng;

use super::{Figures, expire_all, per};
use crate::queues::{Queue, TimerQueue};
use crate::workload::{Churn, Deadlines, deadlines, fill, wakers};

/// Nanoseconds to insert one timer.
pub fn insert<Q: Queue>(timers: usize, is_warm: bool) -> Figures {
    let repeats = (50_000 / timers).max(1);
    let epoch = Q::epoch();
    let deadlines = deadlines(epoch, timers);
    let mut wakers = wakers(timers);
    let mut handles = Vec::with_capacity(timers);
    let mut queue = None;
    let mut elapsed = Duration::ZERO;
    // The first time is not counted: the vectors above are as cold as the queue.
    for repeat in 0..=repeats {
        if !is_warm {
            queue = None;
        }
        let begin = Instant::now();
        let queue = queue.get_or_insert_with(|| Q::new(epoch));
        fill(queue, &deadlines, &mut wakers, &mut handles);
        let end = Instant::now();
        if repeat > 0 {
            elapsed += end - begin;
        }
        queue.lay_in(timers);
        wakers.extend(
            handles
                .drain(..)
                .map(|handle| queue.cancel(handle).expect("armed")),
        );
    }
    [per(elapsed, timers * repeats)].into()
}

/// Nanoseconds to cancel a timer and insert another: the one just armed, and any.
pub fn churn<Q: Queue>(timers: usize, deadlines: Deadlines) -> Figures {
    let mut churn = Churn::<Q>::new(timers, deadlines);
    let recent = time(&mut churn, Churn::recent);
    [recent, time(&mut churn, Churn::random)].into()
}

/// Nanoseconds to give any timer another deadline: pushed back behind all others, as an idle timeout
/// is, and any.
pub fn rearm<Q: TimerQueue>(timers: usize) -> Figures {
    let mut churn = Churn::<Q>::new(timers, Deadlines::Mixed);
    let mut last = churn.next_deadline() + Duration::from_secs(30);
    let later = time(&mut churn, |churn| {
        churn.next_deadline();
        last += Duration::from_micros(1);
        churn.rearm(last);
    });
    let any = time(&mut churn, |churn| {
        let deadline = churn.next_deadline();
        churn.rearm(deadline);
    });
    [later, any].into()
}

/// Nanoseconds to cancel any timer, insert another and ask for the next expiry, and to ask again.
pub fn next_expiry<Q: TimerQueue>(timers: usize) -> Figures {
    let mut churn = Churn::<Q>::new(timers, Deadlines::Mixed);
    let ask = |churn: &mut Churn<Q>| {
        black_box(black_box(&mut churn.queue).next_expiry());
    };
    let changed = time(&mut churn, |churn| {
        churn.random();
        ask(churn);
    });
    [changed, time(&mut churn, ask)].into()
}

/// Nanoseconds to an `operation`, after some that warm up.
fn time<Q: Queue>(churn: &mut Churn<Q>, mut operation: impl FnMut(&mut Churn<Q>)) -> f64 {
    let operations = 100_000.max(churn.handles.len() / 4);
    let warm_up = operations / 10;
    churn.queue.lay_in(warm_up + operations);
    for _ in 0..warm_up {
        operation(churn);
    }
    let begin = Instant::now();
    for _ in 0..operations {
        operation(churn);
    }
    let elapsed = begin.elapsed();
    black_box(&churn.queue);
    per(elapsed, operations)
}

/// Milliseconds to create 100,000 timers, to set all of them to one time, to set them to different times, and to expire
/// them in one poll: the table of JetByte's timer queue articles.
pub fn create_set_expire<Q: TimerQueue>() -> Figures {
    const TIMERS: usize = 100_000;
    let epoch = Q::epoch();
    let mut queue = Q::new(epoch);
    let first = deadlines(epoch, TIMERS);
    let same = vec![epoch + Duration::from_secs(10); TIMERS];
    let mut different = first.clone();
    Rng::with_seed(6).shuffle(&mut different);
    let mut wakers = wakers(TIMERS);
    let mut handles = Vec::with_capacity(TIMERS);
    let mut expired = Vec::with_capacity(TIMERS);
    queue.lay_in(2 * TIMERS);

    let begin = Instant::now();
    fill(&mut queue, &first, &mut wakers, &mut handles);
    let created = begin.elapsed();
    let mut handles: Vec<Option<Q::Handle>> = handles.into_iter().map(Some).collect();
    let [set_same, set_different] = [same, different].map(|deadlines| {
        let begin = Instant::now();
        for (handle, deadline) in handles.iter_mut().zip(deadlines) {
            let armed = handle.take().expect("put back at once");
            *handle = Some(queue.rearm(armed, deadline));
        }
        begin.elapsed()
    });
    let now = epoch + Duration::from_secs(31);
    queue.advance(now);
    let begin = Instant::now();
    expire_all(&mut queue, now, &mut expired);
    let expire = begin.elapsed();

    let figures = [created, set_same, set_different, expire];
    let figures = figures.map(|elapsed| elapsed.as_secs_f64() * 1e3);
    Figures::of_polls::<Q>(&figures, expired.len(), TIMERS)
}
