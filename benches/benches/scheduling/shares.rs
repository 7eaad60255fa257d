//! How two queues that always want to run divide the thread's time.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benches::bench::{Column, case, figures};
use glommio::timer::sleep;
use glommio::{
    Latency, LocalExecutorBuilder, Shares, SharesManager, Task, executor, spawn_local_into,
    yield_if_needed,
};
use support::process::thread_time;

use crate::busy::compute;

/// The shares of the first queue.
#[derive(Clone, Copy, Debug)]
enum First {
    Always(usize),
    /// These before the window, and these in it.
    InTurn([usize; 2]),
}

/// When a task yields the thread.
#[derive(Clone, Copy, Debug)]
enum Turns {
    /// When `yield_if_needed` says so, looked at after each few microseconds.
    IfNeeded,
    /// After this much time, with `yield_task_queue_now`.
    Of(Duration),
}

#[rustfmt::skip]
const PAIRS: [(&str, First, usize); 4] = [
    ("100 : 900", First::Always(100), 900),
    ("1000 : 10", First::Always(1000), 10),
    ("1000 : 1000", First::Always(1000), 1000),
    ("dynamic 900, of 100 and 900 in turn : 900", First::InTurn([100, 900]), 900),
];

#[rustfmt::skip]
const WAYS: [(&str, Turns, Duration); 3] = [
    ("`yield_if_needed`, slices of 100 ms (default)", Turns::IfNeeded, Duration::from_millis(100)),
    ("`yield_if_needed`, slices of 5 ms", Turns::IfNeeded, Duration::from_millis(5)),
    ("`yield_task_queue_now` after 2 ms", Turns::Of(Duration::from_millis(2)), Duration::from_millis(100)),
];

/// A column for each pair of shares and way to yield, measured in a window of time.
pub fn columns(window: Duration) -> Vec<Column> {
    let pairs = PAIRS.into_iter();
    let all = pairs.flat_map(|pair| WAYS.into_iter().map(move |way| (pair, way)));
    let columns = all.map(|((shares, first, second), (turns, way, slice))| {
        let measure = move || Ok(figures("split", measure(first, second, way, slice, window)));
        Column {
            name: format!("{shares}, {turns}"),
            cases: vec![case("split", measure)],
        }
    });
    columns.collect()
}

/// What the first queue is due, in percent, the rest being the other's; what both got; how far the one with fewer shares
/// is from what it was due, in percent of that; and the longest that each waited from one turn to the next.
fn measure(
    first: First,
    second: usize,
    turns: Turns,
    slice: Duration,
    window: Duration,
) -> [(&'static str, f64); 6] {
    let [before, shares] = match first {
        First::Always(shares) => [shares; 2],
        First::InTurn(shares) => shares,
    };
    let executor = LocalExecutorBuilder::default()
        .preempt_timer(slice)
        .make()
        .expect("an executor");
    executor.run(async {
        let changing = Rc::new(Changing(Cell::new(before)));
        let first_shares = match first {
            First::Always(shares) => Shares::Static(shares),
            First::InTurn(_) => Shares::Dynamic(changing.clone()),
        };
        let workers = [first_shares, Shares::Static(second)].map(|it| Worker::start(it, turns));
        // What came before both ran does not count.
        sleep(window / 2).await;
        changing.0.set(shares);
        for worker in &workers {
            worker.time.set(Duration::ZERO);
            worker.longest_wait.set(Duration::ZERO);
        }
        sleep(window).await;
        let [time, other] = workers.each_ref().map(|it| it.time.take().as_secs_f64());
        let [wait, other_wait] = workers
            .each_ref()
            .map(|it| it.longest_wait.get().as_secs_f64() * 1e3);
        let due = 100.0 * shares as f64 / (shares + second) as f64;
        let got = 100.0 * time / (time + other);
        [
            ("due", due),
            ("first", got),
            ("second", 100.0 * other / (time + other)),
            ("off", 100.0 * (got - due).abs() / due.min(100.0 - due)),
            ("wait-first", wait),
            ("wait-second", other_wait),
        ]
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
