//! Arm and cancel while many others wait: the life of a timeout.

use benches::timers::{Churn, Deadlines, TimerQueue};
use criterion::Bencher;

#[path = "criteria/mod.rs"]
mod criteria;

use criteria::{Bench, Chart, Panel, run};

const RECENT: Panel = Panel {
    group: "churn-recent",
    title: "the timer just armed is cancelled",
    operations: |_| 1,
};
const RANDOM: Panel = Panel {
    group: "churn-random",
    title: "any timer is cancelled",
    operations: |_| 1,
};

fn main() -> std::io::Result<()> {
    let chart = Chart {
        name: "churn",
        title: "Timer queues: insert + cancel",
        panels: &[RECENT, RANDOM],
        populations: &[1_000, 10_000, 100_000],
        population_label: "live timers",
        operation_label: "ns per insert and cancel",
    };
    run(&chart, &Pairs)
}

struct Pairs;

impl Bench for Pairs {
    fn bench<Q: TimerQueue>(&self, bencher: &mut Bencher<'_>, panel: &Panel, population: usize) {
        let mut churn = Churn::<Q>::new(population, Deadlines::Mixed);
        match panel.group {
            group if group == RECENT.group => bencher.iter(|| churn.recent()),
            _ => bencher.iter(|| churn.random()),
        }
    }
}
