//! What a poll costs beside many other queues that want to run.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benches::bench::{Column, case, figures};
use glommio::timer::sleep;
use glommio::{Latency, LocalExecutor, Shares, executor, spawn_local, spawn_local_into};

/// How often a timer wakes a task meanwhile: each time the executor looks at all that it has to do.
const TICK: Duration = Duration::from_micros(30);

/// Queues that want to run all the time.
const QUEUES: [usize; 4] = [10, 100, 1000, 5000];

/// How long a poll takes in crowds of all sizes, beside queues without latency and where it matters for every tenth, each
/// watched for `window`.
pub fn columns(window: Duration) -> Vec<Column> {
    let column = |queues| {
        let measure = move || {
            let poll = |matters| measure_poll(queues, matters, window).as_nanos() as f64;
            Ok(figures(
                "crowd",
                [("none", poll(false)), ("tenth", poll(true))],
            ))
        };
        Column {
            name: format!("{queues} queues"),
            cases: vec![case("crowd", measure)],
        }
    };
    QUEUES.map(column).into()
}

fn measure_poll(queues: usize, matters: bool, window: Duration) -> Duration {
    LocalExecutor::default().run(async {
        let polls = Rc::new(Cell::new(0_u32));
        let tasks: Vec<_> = (0..queues)
            .map(|number| {
                let latency = match number % 10 {
                    9 if matters => Latency::Matters(Duration::from_millis(1 + number as u64 % 7)),
                    _ => Latency::NotImportant,
                };
                let queue = executor().create_task_queue(Shares::default(), latency, "");
                let polls = Rc::clone(&polls);
                let work = async move {
                    loop {
                        polls.set(polls.get() + 1);
                        executor().yield_task_queue_now().await;
                    }
                };
                spawn_local_into(work, queue).expect("it was just made")
            })
            .collect();
        let tick = spawn_local(async {
            loop {
                sleep(TICK).await;
            }
        });
        // Until all have had a few turns.
        while polls.get() < 10 * queues as u32 {
            sleep(TICK).await;
        }
        let (begin, before) = (Instant::now(), polls.get());
        sleep(window).await;
        let cost = begin.elapsed() / (polls.get() - before).max(1);
        drop((tick, tasks));
        cost
    })
}
