//! Many timers that fire: how late, and for how much CPU.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::machine::{process_cpu, process_waits};
use crate::samples::{Random, Samples, microseconds, nanoseconds};
use crate::signal::Signal;
use crate::{Runtime, Slack, report};

const TIMERS: usize = 100_000;
/// From the first spawn to the first deadline: time enough to arm all timers, on a busy machine too.
pub const LEAD: Duration = Duration::from_secs(1);

/// What came of it.
struct Fired {
    /// From a task's deadline to the moment it ran, in µs.
    lateness: Samples,
    /// CPU time of the process from 300 ms before the first deadline until the last task ran.
    cpu: Duration,
    /// Wake-ups of the process in that time.
    wakes: i64,
}

/// `expire-spread-p50`, `-p99`, `-p999`, `-max`, µs: 100,000 tasks sleep until deadlines 10 µs apart, a second's
/// worth, armed in random order; from a task's deadline to the moment it runs.
/// `-cpu`, ms, and `-wakes`: what the process needed from 300 ms before the first deadline until the last task ran.
pub fn spread_over_a_second<R: Runtime>() {
    let mut fired = R::run(fire::<R>(Duration::from_secs(1)));
    report("expire-spread-p50", fired.lateness.median());
    report("expire-spread-p99", fired.lateness.quantile(0.99));
    report("expire-spread-p999", fired.lateness.quantile(0.999));
    report("expire-spread-max", fired.lateness.quantile(1.0));
    report("expire-spread-cpu", nanoseconds(fired.cpu) / 1e6);
    report("expire-spread-wakes", fired.wakes as f64);
}

/// `expire-slack-100us-p50`, `-max`, `-cpu`, `-wakes`: the same, in an executor that may be 100 µs late.
pub fn spread_with_a_little_slack<R: Slack>() {
    spread_with_slack::<R>("expire-slack-100us", Duration::from_micros(100));
}

/// `expire-slack-1ms-p50`, `-max`, `-cpu`, `-wakes`: the same with 1 ms.
pub fn spread_with_slack_of_a_tick<R: Slack>() {
    spread_with_slack::<R>("expire-slack-1ms", Duration::from_millis(1));
}

fn spread_with_slack<R: Slack>(row: &str, slack: Duration) {
    let mut fired = R::run_with_slack(slack, fire::<R>(Duration::from_secs(1)));
    report(&format!("{row}-p50"), fired.lateness.median());
    report(&format!("{row}-max"), fired.lateness.quantile(1.0));
    report(&format!("{row}-cpu"), nanoseconds(fired.cpu) / 1e6);
    report(&format!("{row}-wakes"), fired.wakes as f64);
}

/// `expire-burst-p50`, `-p99`, `-p999`, `-max`, `-cpu`, ms: as `expire-spread` with all deadlines within one
/// millisecond.
pub fn within_a_millisecond<R: Runtime>() {
    let mut fired = R::run(fire::<R>(Duration::from_millis(1)));
    report("expire-burst-p50", fired.lateness.median() / 1e3);
    report("expire-burst-p99", fired.lateness.quantile(0.99) / 1e3);
    report("expire-burst-p999", fired.lateness.quantile(0.999) / 1e3);
    report("expire-burst-max", fired.lateness.quantile(1.0) / 1e3);
    report("expire-burst-cpu", nanoseconds(fired.cpu) / 1e6);
}

/// Arms the timers evenly over `span` and waits until all have fired.
async fn fire<R: Runtime>(span: Duration) -> Fired {
    let first = Instant::now() + LEAD;
    let crowd = Crowd::<R>::arm(first, span);
    // Some runtimes arm a timer only once its task is polled, and a wheel may sort its timers a while before
    // they are due: the first is to be over by then, the second counts.
    let well_before = first - Duration::from_millis(300);
    R::timer(well_before.saturating_duration_since(Instant::now())).await;
    assert!(
        Instant::now() < first,
        "arming the timers took longer than the lead: the figures would be skewed"
    );
    let (cpu_before, wakes_before) = (process_cpu(), process_waits());
    crowd.has_ended.wait().await;
    Fired {
        cpu: process_cpu() - cpu_before,
        wakes: process_waits() - wakes_before,
        lateness: crowd.lateness.take(),
    }
}

/// 100,000 tasks that sleep once.
pub struct Crowd<R> {
    /// Of those that have run, in µs.
    lateness: Rc<RefCell<Samples>>,
    /// Raised when all have run.
    pub has_ended: Rc<Signal>,
    runtime: PhantomData<R>,
}

impl<R: Runtime> Crowd<R> {
    /// Spawns tasks with deadlines evenly spread over `span` from `first`, in random order.
    pub fn arm(first: Instant, span: Duration) -> Self {
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
        Crowd {
            lateness,
            has_ended,
            runtime: PhantomData,
        }
    }
}
