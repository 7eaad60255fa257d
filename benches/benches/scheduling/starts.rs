//! How soon a task runs that was woken beside one that computes.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use benches::bench::{Column, case, figures};
use glommio::timer::Timer;
use glommio::{
    Latency, LocalExecutor, Shares, TaskQueueHandle, executor, spawn_local_into, yield_if_needed,
};
use support::quantiles::{Durations, Histogram, histogram};

use crate::busy::{compute, pause};

/// Who wakes the task.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Timer,
    ForeignThread,
    Neighbour,
}

/// Which queue the task is in; its neighbour has one of its own, with 1000 shares and no latency.
#[derive(Clone, Copy, Debug)]
enum Queue {
    OfItsOwn(Latency),
    OfTheNeighbour,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const ONE: Queue = Queue::OfItsOwn(Latency::Matters(MILLISECOND));
const TEN: Queue = Queue::OfItsOwn(Latency::Matters(Duration::from_millis(10)));
const NONE: Queue = Queue::OfItsOwn(Latency::NotImportant);

#[rustfmt::skip]
const KINDS: [(&str, Queue, Cause); 9] = [
    ("`Matters(1 ms)`, its timer", ONE, Cause::Timer),
    ("`Matters(1 ms)`, another thread", ONE, Cause::ForeignThread),
    ("`Matters(1 ms)`, the neighbour", ONE, Cause::Neighbour),
    ("`Matters(10 ms)`, its timer", TEN, Cause::Timer),
    ("`Matters(10 ms)`, another thread", TEN, Cause::ForeignThread),
    ("`Matters(10 ms)`, the neighbour", TEN, Cause::Neighbour),
    ("`NotImportant`, its timer", NONE, Cause::Timer),
    ("`NotImportant`, another thread", NONE, Cause::ForeignThread),
    ("the neighbour's, another thread", Queue::OfTheNeighbour, Cause::ForeignThread),
];

/// A column for each queue and what wakes its task, of so many starts: microseconds from the wake, or the deadline, to
/// the first instruction.
pub fn columns(samples: usize) -> impl Iterator<Item = Column> {
    KINDS.into_iter().map(move |(name, queue, cause)| {
        let measure = move || {
            let latency = beside_neighbour(queue, cause, samples);
            let quantiles = [
                ("p50", 0.5),
                ("p90", 0.9),
                ("p99", 0.99),
                ("p999", 0.999),
                ("max", 1.0),
            ];
            let us = |part| latency.at(part).as_nanos() as f64 / 1e3;
            Ok(figures(
                "start",
                quantiles.map(|(row, part)| (row, us(part))),
            ))
        };
        Column {
            name: name.to_owned(),
            cases: vec![case("start", measure)],
        }
    })
}

fn beside_neighbour(queue: Queue, cause: Cause, samples: usize) -> Histogram<u64> {
    LocalExecutor::default().run(async {
        let new_queue = |latency| executor().create_task_queue(Shares::default(), latency, "");
        let neighbours = new_queue(Latency::NotImportant);
        let handle = match queue {
            Queue::OfItsOwn(latency) => new_queue(latency),
            Queue::OfTheNeighbour => neighbours,
        };
        let request = Rc::new(Request::default());
        let _neighbour = spawn_local_into(neighbour(Rc::clone(&request)), neighbours);
        let starts: Pin<Box<dyn Future<Output = Histogram<u64>>>> = match cause {
            Cause::Timer => Box::pin(by_timer(samples)),
            Cause::ForeignThread => Box::pin(by_foreign_thread(samples)),
            Cause::Neighbour => Box::pin(by_neighbour(request, samples)),
        };
        spawn(starts, handle).await
    })
}

fn spawn<T: 'static>(
    future: impl Future<Output = T> + 'static,
    queue: TaskQueueHandle,
) -> glommio::Task<T> {
    spawn_local_into(future, queue).expect("the queue exists")
}

/// A wake that the neighbour is asked for.
#[derive(Default)]
struct Request {
    waker: Cell<Option<Waker>>,
    not_before: Cell<Option<Instant>>,
    woken_at: Cell<Option<Instant>>,
}

/// Computes for ever, in loops of a few microseconds.
async fn neighbour(request: Rc<Request>) {
    loop {
        compute();
        if request
            .not_before
            .get()
            .is_some_and(|at| at <= Instant::now())
            && let Some(waker) = request.waker.take()
        {
            request.woken_at.set(Some(Instant::now()));
            waker.wake();
        }
        yield_if_needed().await;
    }
}

async fn by_timer(samples: usize) -> Histogram<u64> {
    let mut latency = histogram();
    for turn in 0..samples {
        let deadline = Instant::now() + pause(turn);
        Timer::new(deadline.saturating_duration_since(Instant::now())).await;
        latency.enter(deadline.elapsed());
    }
    latency
}

async fn by_neighbour(request: Rc<Request>, samples: usize) -> Histogram<u64> {
    let mut latency = histogram();
    for turn in 0..samples {
        request.not_before.set(Some(Instant::now() + pause(turn)));
        let woken_at = poll_fn(|cx| match request.woken_at.take() {
            Some(at) => Poll::Ready(at),
            None => {
                request.waker.set(Some(cx.waker().clone()));
                Poll::Pending
            }
        })
        .await;
        latency.enter(woken_at.elapsed());
    }
    latency
}

async fn by_foreign_thread(samples: usize) -> Histogram<u64> {
    let woken_at = Arc::new(Mutex::new(None));
    let (ask, asked) = channel::<(Waker, Duration)>();
    let tells = Arc::clone(&woken_at);
    let waking_thread = thread::spawn(move || {
        for (waker, pause) in asked {
            thread::sleep(pause);
            *tells.lock().expect("no thread panics") = Some(Instant::now());
            waker.wake();
        }
    });
    let mut latency = histogram();
    for turn in 0..samples {
        let at = wait_for_thread(&woken_at, &ask, pause(turn)).await;
        latency.enter(at.elapsed());
    }
    drop(ask);
    waking_thread.join().expect("it only wakes");
    latency
}

async fn wait_for_thread(
    woken_at: &Mutex<Option<Instant>>,
    ask: &Sender<(Waker, Duration)>,
    pause: Duration,
) -> Instant {
    let mut has_asked = false;
    poll_fn(|cx| {
        if !std::mem::replace(&mut has_asked, true) {
            ask.send((cx.waker().clone(), pause))
                .expect("the waking thread receives");
            return Poll::Pending;
        }
        match woken_at.lock().expect("no thread panics").take() {
            Some(at) => Poll::Ready(at),
            None => Poll::Pending,
        }
    })
    .await
}
