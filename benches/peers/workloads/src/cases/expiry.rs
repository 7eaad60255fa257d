//! Many timers that fire: how late, and for how much CPU.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::machine::process_cpu;
use crate::samples::{Random, Samples, microseconds, nanoseconds};
use crate::signal::Signal;
use crate::{Runtime, report};

const TIMERS: usize = 100_000;
/// From the first spawn to the first deadline: time enough to arm all timers, on a busy machine too.
const LEAD: Duration = Duration::from_secs(1);

/// `expire-spread-p50`, `-p99`, µs: 100,000 tasks sleep until deadlines 10 µs apart, a second's worth, armed
/// in random order; from a task's deadline to the moment it runs.
/// `expire-spread-cpu`, ms: CPU time of the process from 300 ms before the first deadline until the last task ran.
pub fn spread_over_a_second<R: Runtime>() {
    let (mut lateness, cpu) = R::run(fire::<R>(Duration::from_secs(1)));
    report("expire-spread-p50", lateness.median());
    report("expire-spread-p99", lateness.quantile(0.99));
    report("expire-spread-cpu", nanoseconds(cpu) / 1e6);
}

/// `expire-burst-p50`, ms: the same with all deadlines within one millisecond.
pub fn within_a_millisecond<R: Runtime>() {
    let (mut lateness, _) = R::run(fire::<R>(Duration::from_millis(1)));
    report("expire-burst-p50", lateness.median() / 1e3);
}

/// Arms the timers evenly over `span`; gives the lateness of each in µs and the CPU time that firing them took.
async fn fire<R: Runtime>(span: Duration) -> (Samples, Duration) {
    let first = Instant::now() + LEAD;
    let mut deadlines: Vec<Instant> = (0..TIMERS)
        .map(|index| first + span.mul_f64(index as f64 / TIMERS as f64))
        .collect();
    Random::new(1).shuffle(&mut deadlines);

    let lateness = Rc::new(RefCell::new(Samples::with_capacity(TIMERS)));
    let has_ended = Rc::new(Signal::default());
    for deadline in deadlines {
        let (lateness, has_ended) = (lateness.clone(), has_ended.clone());
        R::spawn_detached(async move {
            R::timer(deadline.saturating_duration_since(Instant::now())).await;
            let late = Instant::now().saturating_duration_since(deadline);
            lateness.borrow_mut().push(microseconds(late));
            if lateness.borrow().len() == TIMERS {
                has_ended.raise();
            }
        });
    }
    // Some runtimes arm a timer only once its task is polled, and a wheel may sort its timers a while before
    // they are due: the first is to be over by then, the second counts.
    let well_before = first - Duration::from_millis(300);
    R::timer(well_before.saturating_duration_since(Instant::now())).await;
    assert!(
        Instant::now() < first,
        "arming the timers took longer than the lead: the figures would be skewed"
    );
    let cpu_before = process_cpu();
    has_ended.wait().await;
    let cpu = process_cpu() - cpu_before;
    (lateness.take(), cpu)
}
