//! Create, set and expire 100,000 timers (the table of JetByte's timer queue articles).

use std::time::{Duration, Instant};

use support::generator::Rng;

use super::{expire_all, is_astray};
use crate::figures::{Figure, Figures};
use crate::queues::TimerQueue;
use crate::workload::{deadlines, fill, wakers};

/// Milliseconds to create the timers, to set all of them to one time, to set them to different
/// times, and to expire them in one poll.
pub fn run<Q: TimerQueue>() -> Figures {
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

    let is_astray = is_astray::<Q>(expired.len(), TIMERS);
    [created, set_same, set_different, expire]
        .map(|elapsed| {
            let value = elapsed.as_secs_f64() * 1e3;
            Some(Figure { value, is_astray })
        })
        .to_vec()
}
