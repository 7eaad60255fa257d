//! Ask for the next expiry: after a cancel and an insert, whose time is included, and again without
//! any change.

use std::hint::black_box;

use benches::timers::{Churn, Deadlines, TimerQueue};
use criterion::Bencher;

#[path = "criteria/mod.rs"]
mod criteria;

use criteria::{Bench, Chart, Panel, run};

const CHANGED: Panel = Panel {
    group: "next-expiry-changed",
    title: "cancel, insert and ask",
    operations: |_| 1,
};
const UNCHANGED: Panel = Panel {
    group: "next-expiry-unchanged",
    title: "ask again",
    operations: |_| 1,
};

fn main() -> std::io::Result<()> {
    let chart = Chart {
        name: "next_expiry",
        title: "Timer queues: next expiry",
        panels: &[CHANGED, UNCHANGED],
        populations: &[100, 1_000, 10_000, 100_000],
        population_label: "live timers",
        operation_label: "ns",
    };
    run(&chart, &Ask)
}

struct Ask;

impl Bench for Ask {
    fn bench<Q: TimerQueue>(&self, bencher: &mut Bencher<'_>, panel: &Panel, population: usize) {
        let mut churn = Churn::<Q>::new(population, Deadlines::Mixed);
        let is_changed = panel.group == CHANGED.group;
        bencher.iter(|| {
            if is_changed {
                churn.random();
            }
            black_box(&mut churn.queue).next_expiry()
        });
    }
}
