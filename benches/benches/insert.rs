//! Arm so many timers: in a queue just made, and in one that has held as many before.

use std::time::{Duration, Instant};

use benches::timers::{TimerQueue, deadlines, fill, wakers};
use criterion::Bencher;

#[path = "criteria/mod.rs"]
mod criteria;

use criteria::{Bench, Chart, Panel, run};

const COLD: Panel = Panel {
    group: "insert-cold",
    title: "cold: a fresh queue, its memory included",
    operations: |population| population,
};
const WARM: Panel = Panel {
    group: "insert-warm",
    title: "warm: a queue that was as full before",
    operations: |population| population,
};

fn main() -> std::io::Result<()> {
    let chart = Chart {
        name: "insert",
        title: "Timer queues: insert",
        panels: &[COLD, WARM],
        populations: &[100, 1_000, 10_000, 100_000],
        population_label: "timers inserted",
        operation_label: "ns per insert",
    };
    run(&chart, &Fill)
}

struct Fill;

impl Bench for Fill {
    fn bench<Q: TimerQueue>(&self, bencher: &mut Bencher<'_>, panel: &Panel, population: usize) {
        let epoch = Q::epoch();
        let deadlines = deadlines(epoch, population);
        let mut handles = Vec::with_capacity(population);
        let mut wakers = wakers(population);
        let mut queue = None;
        bencher.iter_custom(|iterations| {
            let mut elapsed = Duration::ZERO;
            for _ in 0..iterations {
                if panel.group == COLD.group {
                    queue = None;
                }
                let begin = Instant::now();
                let queue = queue.get_or_insert_with(|| Q::new(epoch));
                fill(queue, &deadlines, &mut wakers, &mut handles);
                elapsed += begin.elapsed();
                wakers.extend(handles.drain(..).filter_map(|handle| queue.cancel(handle)));
            }
            elapsed
        });
    }
}
