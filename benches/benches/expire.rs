//! Polls that fire: 100 of many timers, and all of them.

use std::time::{Duration, Instant};

use benches::timers::{Rotation, TimerQueue};
use criterion::Bencher;

#[path = "criteria/mod.rs"]
mod criteria;

use criteria::{Bench, Chart, Panel, run};

const BATCH: usize = 100;

const SOME: Panel = Panel {
    group: "expire-some",
    title: "100 timers a poll",
    operations: |_| BATCH,
};
const ALL: Panel = Panel {
    group: "expire-all",
    title: "all timers in one poll",
    operations: |population| population,
};

fn main() -> std::io::Result<()> {
    let chart = Chart {
        name: "expire",
        title: "Timer queues: expiry",
        panels: &[SOME, ALL],
        populations: &[1_000, 10_000, 100_000],
        population_label: "live timers",
        operation_label: "ns per fired timer",
    };
    run(&chart, &Polls)
}

struct Polls;

impl Bench for Polls {
    fn bench<Q: TimerQueue>(&self, bencher: &mut Bencher<'_>, panel: &Panel, population: usize) {
        let batch = (panel.operations)(population);
        let mut rotation = Rotation::<Q>::new(population, batch);
        bencher.iter_custom(|iterations| {
            let mut elapsed = Duration::ZERO;
            for _ in 0..iterations {
                let now = rotation.advance();
                let begin = Instant::now();
                rotation.expire(now);
                elapsed += begin.elapsed();
                rotation.release();
                assert_eq!(rotation.arm(), batch);
            }
            elapsed
        });
    }
}
