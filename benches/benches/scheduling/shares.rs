//! How two queues that always want to run divide the thread's time.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glommio::timer::sleep;
use glommio::{
    Latency, LocalExecutorBuilder, Shares, SharesManager, Task, executor, spawn_local_into,
    yield_if_needed,
};
use support::process::thread_time;

use crate::busy::compute;

/// What came out for one pair of queues.
#[derive(Debug)]
pub struct Split {
    /// The shares of both.
    pub shares: &'static str,
    /// How the tasks yield the thread.
    pub turns: &'static str,
    /// What the first queue is due in each window, in percent.
    pub due: Vec<f64>,
    /// What it got.
    pub got: Vec<f64>,
}

/// The shares of the first queue.
#[derive(Clone, Copy, Debug)]
enum First {
    Always(usize),
    /// One after the other, window by window.
    InTurn([usize; 2]),
}

impl First {
    fn in_window(self, window: usize) -> usize {
        match self {
            First::Always(shares) => shares,
            First::InTurn(shares) => shares[window % 2],
        }
    }
}

/// When a task yields the thread.
#[derive(Clone, Copy, Debug)]
enum Turns {
    /// When `yield_if_needed` says so, looked at after each few microseconds.
    IfNeeded,
    /// After this much time, with `yield_task_queue_now`.
    Of(Duration),
}

const PAIRS: [(&str, First, usize); 4] = [
    ("100 : 900", First::Always(100), 900),
    ("1000 : 10", First::Always(1000), 10),
    ("1000 : 1000", First::Always(1000), 1000),
    (
        "dynamic 100 and 900 in turn : 900",
        First::InTurn([100, 900]),
        900,
    ),
];

const WAYS: [(&str, Turns, Duration); 3] = [
    (
        "`yield_if_needed`, slices of 100 ms (default)",
        Turns::IfNeeded,
        Duration::from_millis(100),
    ),
    (
        "`yield_if_needed`, slices of 5 ms",
        Turns::IfNeeded,
        Duration::from_millis(5),
    ),
    (
        "`yield_task_queue_now` after 2 ms",
        Turns::Of(Duration::from_millis(2)),
        Duration::from_millis(100),
    ),
];

/// Every pair of shares in every way.
pub fn measure(window: Duration, windows: usize) -> Vec<Split> {
    let mut splits = Vec::new();
    for (shares, first, second) in PAIRS {
        for (turns, way, slice) in WAYS {
            let (due, got) = split(first, second, way, slice, window, windows);
            splits.push(Split {
                shares,
                turns,
                due,
                got,
            });
        }
    }
    splits
}

fn split(
    first: First,
    second: usize,
    turns: Turns,
    slice: Duration,
    window: Duration,
    windows: usize,
) -> (Vec<f64>, Vec<f64>) {
    let executor = LocalExecutorBuilder::default()
        .preempt_timer(slice)
        .make()
        .expect("an executor");
    executor.run(async {
        let changing = Rc::new(Changing(Cell::new(first.in_window(0))));
        let first_shares = match first {
            First::Always(shares) => Shares::Static(shares),
            First::InTurn(_) => Shares::Dynamic(changing.clone()),
        };
        let workers = [first_shares, Shares::Static(second)].map(|it| Worker::start(it, turns));
        // What came before both ran does not count.
        sleep(window).await;
        workers.iter().for_each(|it| it.time.set(Duration::ZERO));
        let mut parts = (Vec::new(), Vec::new());
        for number in 0..windows {
            let shares = first.in_window(number);
            changing.0.set(shares);
            sleep(window).await;
            let [first_time, second_time] = workers.each_ref().map(|it| it.time.take());
            let both = (first_time + second_time).as_secs_f64();
            parts
                .0
                .push(100.0 * shares as f64 / (shares + second) as f64);
            parts.1.push(100.0 * first_time.as_secs_f64() / both);
        }
        parts
    })
}

/// Shares that the bench sets.
struct Changing(Cell<usize>);

impl SharesManager for Changing {
    fn shares(&self) -> usize {
        self.0.get()
    }

    fn adjustment_period(&self) -> Duration {
        Duration::from_millis(1)
    }
}

/// A task that always wants to run, and the CPU time that it had.
struct Worker {
    time: Rc<Cell<Duration>>,
    _task: Task<()>,
}

impl Worker {
    fn start(shares: Shares, turns: Turns) -> Worker {
        let queue = executor().create_task_queue(shares, Latency::NotImportant, "worker");
        let time = Rc::new(Cell::new(Duration::ZERO));
        let total = Rc::clone(&time);
        let work = async move {
            loop {
                let (begin, cpu) = (Instant::now(), thread_time());
                loop {
                    compute();
                    let is_over = match turns {
                        Turns::IfNeeded => executor().need_preempt(),
                        Turns::Of(length) => begin.elapsed() >= length,
                    };
                    if is_over {
                        break;
                    }
                }
                total.set(total.get() + thread_time() - cpu);
                match turns {
                    Turns::IfNeeded => yield_if_needed().await,
                    Turns::Of(_) => executor().yield_task_queue_now().await,
                }
            }
        };
        Worker {
            time,
            _task: spawn_local_into(work, queue).expect("it was just made"),
        }
    }
}
