//! Give armed timers another deadline: pushed back as an idle timeout is, and to any time.

use std::hint::black_box;
use std::time::Duration;

use benches::timers::{Churn, Deadlines, TimerQueue};
use criterion::Bencher;

#[path = "criteria/mod.rs"]
mod criteria;

use criteria::{Bench, Chart, Panel, run};

const LATER: Panel = Panel {
    group: "rearm-later",
    title: "to a later time than all others",
    operations: |_| 1,
};
const ANY: Panel = Panel {
    group: "rearm-any",
    title: "to any time",
    operations: |_| 1,
};

fn main() -> std::io::Result<()> {
    let chart = Chart {
        name: "rearm",
        title: "Timer queues: re-arm of any timer",
        panels: &[LATER, ANY],
        populations: &[1_000, 10_000, 100_000],
        population_label: "live timers",
        operation_label: "ns per re-arm",
    };
    run(&chart, &Rearm)
}

struct Rearm;

impl Bench for Rearm {
    fn bench<Q: TimerQueue>(&self, bencher: &mut Bencher<'_>, panel: &Panel, population: usize) {
        let mut churn = Churn::<Q>::new(population, Deadlines::Mixed);
        let mut last = churn.next_deadline() + Duration::from_secs(30);
        let is_later = panel.group == LATER.group;
        bencher.iter(|| {
            let any = churn.next_deadline();
            last += Duration::from_micros(1);
            let victim = churn.victim();
            let handle = churn.handles[victim].take().expect("put back each time");
            let deadline = if is_later { last } else { any };
            churn.handles[victim] = Some(churn.queue.rearm(handle, black_box(deadline)));
        });
    }
}
