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
    /// What the first queue is due in each window, in percent. The rest is the other's.
    pub due: Vec<f64>,
    /// What it got.
    pub got: Vec<f64>,
    /// The longest that each waited from one turn to the next.
    pub longest_waits: [Duration; 2],
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
            let mut split = Split {
                shares,
                turns,
                due: Vec::new(),
                got: Vec::new(),
                longest_waits: [Duration::ZERO; 2],
            };
            split.measure(first, second, way, slice, window, windows);
            splits.push(split);
        }
    }
    splits
}

impl Split {
    fn measure(
        &mut self,
        first: First,
        second: usize,
        turns: Turns,
        slice: Duration,
        window: Duration,
        windows: usize,
    ) {
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
            for worker in &workers {
                worker.time.set(Duration::ZERO);
                worker.longest_wait.set(Duration::ZERO);
            }
            for number in 0..windows {
                let shares = first.in_window(number);
                changing.0.set(shares);
                sleep(window).await;
                let [first_time, second_time] = workers.each_ref().map(|it| it.time.take());
                let both = (first_time + second_time).as_secs_f64();
                let due = 100.0 * shares as f64 / (shares + second) as f64;
                self.due.push(due);
                self.got.push(100.0 * first_time.as_secs_f64() / both);
            }
            self.longest_waits = workers.each_ref().map(|it| it.longest_wait.get());
        });
    }

    /// How far the queue that is furthest off is from what it was due, in percent of that.
    pub fn furthest_off(&self) -> f64 {
        let off = |(due, got): (&f64, &f64)| 100.0 * (got - due).abs() / due.min(100.0 - due);
        self.due.iter().zip(&self.got).map(off).fold(0.0, f64::max)
    }
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

/// A task that always wants to run, the CPU time that it had, and the longest that it waited for a
/// turn.
struct Worker {
    time: Rc<Cell<Duration>>,
    longest_wait: Rc<Cell<Duration>>,
    _task: Task<()>,
}

impl Worker {
    fn start(shares: Shares, turns: Turns) -> Worker {
        let queue = executor().create_task_queue(shares, Latency::NotImportant, "worker");
        let time = Rc::new(Cell::new(Duration::ZERO));
        let longest_wait = Rc::new(Cell::new(Duration::ZERO));
        let (total, longest) = (Rc::clone(&time), Rc::clone(&longest_wait));
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
                let waits_since = Instant::now();
                match turns {
                    Turns::IfNeeded => yield_if_needed().await,
                    Turns::Of(_) => executor().yield_task_queue_now().await,
                }
                longest.set(longest.get().max(waits_since.elapsed()));
            }
        };
        Worker {
            time,
            longest_wait,
            _task: spawn_local_into(work, queue).expect("it was just made"),
        }
    }
}
