//! What a queue asks of the allocator.

use crate::counting::Allocations;
use crate::figures::{Figures, figures};
use crate::queues::Queue;
use crate::workload::{Churn, Deadlines, deadlines, fill, wakers};

/// Bytes to a timer at 100,000, bytes of an empty queue, and allocator calls to a cancel and insert
/// after warming up.
pub fn run<Q: Queue>() -> Figures {
    const TIMERS: usize = 100_000;
    let epoch = Q::epoch();
    let deadlines = deadlines(epoch, TIMERS);
    let mut wakers = wakers(TIMERS);
    let mut handles = Vec::with_capacity(TIMERS);
    let before = Allocations::of_this_thread();
    let mut queue = Q::new(epoch);
    let empty = size_of::<Q>() + Allocations::of_this_thread().since(before).bytes;
    fill(&mut queue, &deadlines, &mut wakers, &mut handles);
    let full = size_of::<Q>() + Allocations::of_this_thread().since(before).bytes;
    drop(queue);

    let mut churn = Churn::<Q>::new(TIMERS, Deadlines::Mixed);
    let mut calls = 0;
    for _ in 0..2 {
        churn.queue.lay_in(TIMERS);
        let before = Allocations::of_this_thread();
        for _ in 0..TIMERS {
            churn.random();
        }
        calls = Allocations::of_this_thread().since(before).calls;
    }
    figures([
        full as f64 / TIMERS as f64,
        empty as f64,
        calls as f64 / TIMERS as f64,
    ])
}
