//! Arm so many timers: in a queue just made, and in one that has held as many before.

use std::hint::black_box;
use std::task::Waker;
use std::time::{Duration, Instant};

use benches::timers::{Chart, Panel, Queue, criterion, deadlines, summarize, waker};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use glommio::timer_queue::{ClassicQueue, StagedWheel, TimingWheel};

const CHART: Chart = Chart {
    name: "insert",
    title: "Timer queues: insert",
    panels: &[
        Panel {
            group: "insert-cold",
            title: "cold: a fresh queue, its memory included",
            is_per_timer: true,
        },
        Panel {
            group: "insert-warm",
            title: "warm: a queue that was as full before",
            is_per_timer: true,
        },
    ],
    queues: &[
        <ClassicQueue<Waker> as Queue>::NAME,
        <TimingWheel<Waker> as Queue>::NAME,
        <StagedWheel<Waker> as Queue>::NAME,
    ],
    populations: &[100, 1_000, 10_000, 100_000],
    population_label: "timers inserted",
    operation_label: "ns per insert",
};

fn main() -> std::io::Result<()> {
    let mut criterion = criterion();
    run(&mut criterion, CHART.panels[0].group, Start::Cold);
    run(&mut criterion, CHART.panels[1].group, Start::Warm);
    criterion.final_summary();
    summarize(&CHART)
}

#[derive(Clone, Copy)]
enum Start {
    Cold,
    Warm,
}

fn run(criterion: &mut Criterion, group: &str, start: Start) {
    let mut group = criterion.benchmark_group(group);
    for &population in CHART.populations {
        group.throughput(Throughput::Elements(population as u64));
        bench::<ClassicQueue<Waker>>(&mut group, population, start);
        bench::<TimingWheel<Waker>>(&mut group, population, start);
        bench::<StagedWheel<Waker>>(&mut group, population, start);
    }
    group.finish();
}

fn bench<Q: Queue>(group: &mut BenchmarkGroup<'_, WallTime>, population: usize, start: Start) {
    let id = BenchmarkId::new(Q::NAME, population);
    group.bench_function(id, |bencher| {
        let epoch = Instant::now();
        let deadlines = deadlines(epoch, population);
        let waker = waker();
        let mut handles = Vec::with_capacity(population);
        let mut wakers = Vec::with_capacity(population);
        let mut queue = None;
        bencher.iter_custom(|iterations| {
            let mut elapsed = Duration::ZERO;
            for _ in 0..iterations {
                wakers.resize_with(population, || waker.clone());
                if let Start::Cold = start {
                    queue = None;
                }
                let begin = Instant::now();
                let queue = queue.get_or_insert_with(|| Q::new(epoch));
                for (&deadline, waker) in deadlines.iter().zip(wakers.drain(..)) {
                    handles.push(queue.insert(black_box(deadline), waker));
                }
                elapsed += begin.elapsed();
                for handle in handles.drain(..) {
                    wakers.extend(queue.cancel(handle));
                }
            }
            elapsed
        });
    });
}
