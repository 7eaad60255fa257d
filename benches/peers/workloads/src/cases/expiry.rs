//! Many timers that fire: how late, and for how much CPU.

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::machine::{process_cpu, process_waits};
use crate::samples::{Samples, nanoseconds};
use crate::signal::Signal;
use crate::{Runtime, Slack, report_all};

const TIMERS: usize = 100_000;
/// From the first spawn to the first deadline: time enough to arm all timers, on a busy machine too.
pub const LEAD: Duration = Duration::from_secs(1);

/// What came of it.
struct Fired {
    /// From a task's deadline to the moment it ran, in µs.
    lateness: Samples,
    /// The longest lateness of the [`FIRST`] tasks that ran.
    first: f64,
    /// CPU time of the process from 300 ms before the first deadline until the last task ran.
    cpu: Duration,
    /// Wake-ups of the process in that time.
    wakes: i64,
}

impl Fired {
    /// What the process needed: milliseconds of CPU time, and wake-ups.
    fn report_cost(&self, row: &str) {
        let cpu = nanoseconds(self.cpu) / 1e6;
        report_all(row, [("cpu", cpu), ("wakes", self.wakes as f64)]);
    }

    /// How late those were that were due first, and the worst of all.
    fn report_worst(&mut self, row: &str) {
        let [p999, max] = [0.999, 1.0].map(|part| self.lateness.quantile(part));
        report_all(row, [("first", self.first), ("p999", p999), ("max", max)]);
    }
}

/// `expire-spread-p50`, `-p99`, `-p999`, `-max`, µs: 100,000 tasks sleep until deadlines 10 µs apart, a second's
/// worth, armed in random order; from a task's deadline to the moment it runs. `-first`: the longest of the 100
/// that are due first.
/// `-cpu`, ms, and `-wakes`: what the process needed from 300 ms before the first deadline until the last task ran.
pub fn spread_over_a_second<R: Runtime>() {
    let mut fired = R::run(fire::<R>(TIMERS, Duration::from_secs(1), LEAD));
    let [p50, p99] = [0.5, 0.99].map(|part| fired.lateness.quantile(part));
    report_all("expire-spread", [("p50", p50), ("p99", p99)]);
    fired.report_worst("expire-spread");
    fired.report_cost("expire-spread");
}

/// `expire-bystander-first`, `-p999`, `-max`, µs: the same beside a task that every 100 ms allocates and frees 64 KiB.
/// That has glibc put all of the small pieces together which are free, as any program's own large allocations do.
pub fn beside_large_allocations<R: Runtime>() {
    let mut fired = R::run(async {
        let is_over = Rc::new(Cell::new(false));
        let bystander = R::spawn({
            let is_over = is_over.clone();
            async move {
                while !is_over.get() {
                    R::timer(Duration::from_millis(100)).await;
                    black_box(Vec::<u8>::with_capacity(black_box(64 * 1024)));
                }
            }
        });
        let fired = fire::<R>(TIMERS, Duration::from_secs(1), LEAD).await;
        is_over.set(true);
        bystander.await;
        fired
    });
    fired.report_worst("expire-bystander");
}

/// `expire-soon-first`, `-p999`, `-max`, µs: as `expire-spread`, with the first deadline 200 ms after the first spawn.
pub fn spread_soon<R: Runtime>() {
    let lead = Duration::from_millis(200);
    let mut fired = R::run(fire::<R>(TIMERS, Duration::from_secs(1), lead));
    fired.report_worst("expire-soon");
}

/// `expire-1m-first`, `-p999`, `-max`, µs: as `expire-spread`, a million over ten seconds.
pub fn a_million_over_ten_seconds<R: Runtime>() {
    let lead = Duration::from_secs(4);
    let mut fired = R::run(fire::<R>(10 * TIMERS, Duration::from_secs(10), lead));
    fired.report_worst("expire-1m");
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
    let mut fired = R::run_with_slack(slack, fire::<R>(TIMERS, Duration::from_secs(1), LEAD));
    let [p50, max] = [0.5, 1.0].map(|part| fired.lateness.quantile(part));
    report_all(row, [("p50", p50), ("max", max)]);
    fired.report_cost(row);
}

/// `expire-burst-p50`, `-p99`, `-p999`, `-max`, `-cpu`, ms: as `expire-spread` with all deadlines within one
/// millisecond.
pub fn within_a_millisecond<R: Runtime>() {
    let mut fired = R::run(fire::<R>(TIMERS, Duration::from_millis(1), LEAD));
    let parts = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
    let ms = parts.map(|(end, part)| (end, fired.lateness.quantile(part) / 1e3));
    report_all("expire-burst", ms);
    fired.report_cost("expire-burst");
}

/// Arms `timers` evenly over `span`, the first of them `lead` from now, and waits until all have fired.
async fn fire<R: Runtime>(timers: usize, span: Duration, lead: Duration) -> Fired {
    let first = Instant::now() + lead;
    let crowd = Crowd::<R>::arm(timers, first, span);
    // Some runtimes arm a timer only once its task is polled, and a wheel may sort its timers a while before
    // they are due: the first is to be over by then, the second counts.
    let well_before = first - lead.mul_f64(0.3);
    R::timer(well_before.saturating_duration_since(Instant::now())).await;
    assert!(
        Instant::now() < first,
        "arming the timers took longer than the lead: the figures would be skewed"
    );
    let (cpu_before, wakes_before) = (process_cpu(), process_waits());
    crowd.ends().await;
    let (cpu, wakes) = (process_cpu() - cpu_before, process_waits() - wakes_before);
    let late_ns = crowd.ran.late_ns.take();
    let first_ns = late_ns.iter().take(FIRST).max();
    let mut lateness = Samples::with_capacity(timers);
    late_ns
        .iter()
        .for_each(|&late_ns| lateness.push(late_ns as f64 / 1e3));
    Fired {
        cpu,
        wakes,
        first: *first_ns.expect("tasks have run") as f64 / 1e3,
        lateness,
    }
}

/// How many of the tasks that run count as the first.
const FIRST: usize = 100;

/// Tasks that sleep once.
pub struct Crowd<R> {
    ran: Rc<Ran>,
    runtime: PhantomData<R>,
}

/// What the tasks note, which is part of what is measured: as little as can be.
struct Ran {
    /// From a task's deadline to the moment it ran, in the order of these moments.
    late_ns: RefCell<Vec<u64>>,
    /// Raised when all have run.
    has_ended: Signal,
}

impl<R: Runtime> Crowd<R> {
    /// Spawns 100,000 tasks as [`arm`](Self::arm) does.
    pub fn of_100k(first: Instant, span: Duration) -> Self {
        Self::arm(TIMERS, first, span)
    }

    /// Spawns tasks with deadlines evenly spread over `span` from `first`, in random order.
    fn arm(timers: usize, first: Instant, span: Duration) -> Self {
        let mut deadlines: Vec<Instant> = (0..timers)
            .map(|index| first + span.mul_f64(index as f64 / timers as f64))
            .collect();
        Rng::with_seed(1).shuffle(&mut deadlines);
        let ran = Rc::new(Ran {
            late_ns: RefCell::new(Vec::with_capacity(timers)),
            has_ended: Signal::default(),
        });
        for deadline in deadlines {
            let ran = ran.clone();
            R::spawn_detached(async move {
                R::timer(deadline.saturating_duration_since(Instant::now())).await;
                let late = Instant::now().saturating_duration_since(deadline);
                let mut late_ns = ran.late_ns.borrow_mut();
                late_ns.push(late.as_nanos() as u64);
                if late_ns.len() == timers {
                    ran.has_ended.raise();
                }
            });
        }
        Crowd {
            ran,
            runtime: PhantomData,
        }
    }

    /// Waits until all have run.
    pub async fn ends(&self) {
        self.ran.has_ended.wait().await;
    }
}
