//! Arm and cancel while many others wait: the life of a timeout.

use std::hint::black_box;
use std::task::Waker;
use std::time::Instant;

use benches::timers::{Chart, Panel, Queue, criterion, deadlines, summarize, waker};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion};
use glommio::timer_queue::{ClassicQueue, StagedWheel, TimingWheel};

const CHART: Chart = Chart {
    name: "churn",
    title: "Timer queues: insert + cancel",
    panels: &[
        Panel {
            group: "churn-recent",
            title: "the timer just armed is cancelled",
            is_per_timer: false,
        },
        Panel {
            group: "churn-random",
            title: "any timer is cancelled",
            is_per_timer: false,
        },
    ],
    queues: &[
        <ClassicQueue<Waker> as Queue>::NAME,
        <TimingWheel<Waker> as Queue>::NAME,
        <StagedWheel<Waker> as Queue>::NAME,
    ],
    populations: &[1_000, 10_000, 100_000],
    population_label: "live timers",
    operation_label: "ns per insert and cancel",
};

/// Deadlines prepared, and victims.
const CYCLE: usize = 1 << 16;

fn main() -> std::io::Result<()> {
    let mut criterion = criterion();
    run(&mut criterion, CHART.panels[0].group, Victim::Recent);
    run(&mut criterion, CHART.panels[1].group, Victim::Random);
    criterion.final_summary();
    summarize(&CHART)
}

#[derive(Clone, Copy)]
enum Victim {
    Recent,
    Random,
}

fn run(criterion: &mut Criterion, group: &str, victim: Victim) {
    let mut group = criterion.benchmark_group(group);
    for &population in CHART.populations {
        bench::<ClassicQueue<Waker>>(&mut group, population, victim);
        bench::<TimingWheel<Waker>>(&mut group, population, victim);
        bench::<StagedWheel<Waker>>(&mut group, population, victim);
    }
    group.finish();
}

fn bench<Q: Queue>(group: &mut BenchmarkGroup<'_, WallTime>, population: usize, victim: Victim) {
    let id = BenchmarkId::new(Q::NAME, population);
    group.bench_function(id, |bencher| {
        let epoch = Instant::now();
        let mut queue = Q::new(epoch);
        let waker = waker();
        let mut handles: Vec<Q::Handle> = deadlines(epoch, population)
            .into_iter()
            .map(|deadline| queue.insert(deadline, waker.clone()))
            .collect();
        let deadlines = deadlines(epoch, CYCLE);
        let mut turn = 0;
        match victim {
            Victim::Recent => {
                // The waker goes round, so that no counting of references is measured.
                let mut spare = Some(waker);
                bencher.iter(|| {
                    turn = (turn + 1) % CYCLE;
                    let waker = spare.take().expect("cancelled below");
                    let handle = queue.insert(black_box(deadlines[turn]), waker);
                    spare = queue.cancel(black_box(handle));
                });
            }
            Victim::Random => {
                let victims = victims(population);
                bencher.iter(|| {
                    turn = (turn + 1) % CYCLE;
                    let handle = &mut handles[victims[turn]];
                    let waker = queue.cancel(*handle).expect("armed when chosen before");
                    *handle = queue.insert(black_box(deadlines[turn]), waker);
                });
            }
        }
    });
}

/// Which timer goes next: all of them, in no order.
fn victims(population: usize) -> Vec<usize> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    (0..CYCLE)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random % population as u64) as usize
        })
        .collect()
}
