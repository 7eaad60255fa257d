//! Our queues under Criterion: what is the same in each of those benches.

use std::io;
use std::task::Waker;

use benches::timers::{Queue, TimerQueue};
use criterion::measurement::WallTime;
use criterion::{Bencher, BenchmarkGroup, BenchmarkId, Throughput};
use glommio::timer_queue::{ClassicQueue, StagedWheel};

mod chart;
mod report;

pub use chart::{Chart, Panel};
use report::{criterion, summarize};

/// A bench of timer queues.
pub trait Bench {
    /// Measures one queue with so many timers, for one of the chart's panels.
    fn bench<Q: TimerQueue>(&self, bencher: &mut Bencher<'_>, panel: &Panel, population: usize);
}

/// Measures all our queues for all of `chart`, prints its tables, and leaves them and a plot in
/// `target/timers/`.
///
/// # Errors
/// If a file cannot be written.
pub fn run(chart: &Chart, bench: &impl Bench) -> io::Result<()> {
    let mut criterion = criterion();
    for panel in chart.panels {
        let mut group = criterion.benchmark_group(panel.group);
        for &population in chart.populations {
            group.throughput(Throughput::Elements((panel.operations)(population) as u64));
            bench_queue::<ClassicQueue<Waker>>(&mut group, bench, panel, population);
            bench_queue::<StagedWheel<Waker>>(&mut group, bench, panel, population);
        }
        group.finish();
    }
    criterion.final_summary();
    summarize(chart)
}

fn bench_queue<Q: TimerQueue>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    bench: &impl Bench,
    panel: &Panel,
    population: usize,
) {
    let id = BenchmarkId::new(<Q as Queue>::NAME, population);
    group.bench_function(id, |bencher| bench.bench::<Q>(bencher, panel, population));
}
