//! Wakes from foreign threads in storms: none is lost, whatever the executor is doing.

use crate::common::prelude::*;

/// What another thread raises and a task acknowledges.
#[derive(Default)]
pub(crate) struct Counter {
    count: AtomicUsize,
    seen: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Counter {
    pub(crate) fn raise(&self) -> usize {
        let raised = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let waker = self.waker.lock().unwrap().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        raised
    }

    pub(crate) fn poll_beyond(&self, seen: usize, cx: &Context<'_>) -> Poll<usize> {
        *self.waker.lock().unwrap() = Some(cx.waker().clone());
        match self.count.load(Ordering::SeqCst) {
            count if count > seen => Poll::Ready(count),
            _ => Poll::Pending,
        }
    }

    /// Acknowledges what is raised until it is `end`.
    pub(crate) async fn serve(&self, end: usize) {
        let mut seen = 0;
        while seen < end {
            seen = poll_fn(|cx| self.poll_beyond(seen, cx)).await;
            self.seen.store(seen, Ordering::SeqCst);
        }
    }

    /// Raises `times` times, each time waiting for the answer, after a pause that varies such that
    /// the executor is met in all states between awake and asleep.
    pub(crate) fn hunt(&self, times: usize) {
        for i in 0..times {
            let raised = self.raise();
            while self.seen.load(Ordering::SeqCst) < raised {
                thread::yield_now();
            }
            (0..i % 97 * 8).for_each(|_| std::hint::spin_loop());
        }
    }
}

fn storm(executor: LocalExecutor, hunters: usize, times: usize) {
    let counters: Vec<_> = (0..hunters).map(|_| Arc::new(Counter::default())).collect();
    let threads: Vec<_> = counters
        .iter()
        .map(|counter| {
            let counter = Arc::clone(counter);
            thread::spawn(move || counter.hunt(times))
        })
        .collect();
    executor.run(async {
        let tasks: Vec<_> = counters
            .iter()
            .map(|counter| {
                let counter = Arc::clone(counter);
                spawn_local(async move { counter.serve(times).await })
            })
            .collect();
        join_all(tasks).await;
    });
    for thread in threads {
        thread.join().expect("all were answered");
    }
}

#[run_test]
fn a_storm_of_foreign_wakes_against_parking_loses_none() {
    storm(LocalExecutor::default(), 1, rounds(10_000));
    storm(LocalExecutor::default(), 4, rounds(5_000));
}

#[run_test]
fn a_storm_of_foreign_wakes_against_spinning_loses_none() {
    for spin in [1, 20, 1000] {
        let executor = LocalExecutorBuilder::new(Placement::Fixed(0))
            .spin_before_park(Duration::from_micros(spin))
            .make()
            .expect("CPU 0 exists");
        storm(executor, 2, rounds(1_000));
    }
}

#[run_test]
fn a_storm_against_timers_and_blocking_calls_loses_none() {
    let counter = Arc::new(Counter::default());
    let hunter = Arc::clone(&counter);
    let hunts = rounds(2_000);
    let thread = thread::spawn(move || hunter.hunt(hunts));
    run(async {
        let stop = Rc::new(Cell::new(false));
        let (timers, calls) = (Rc::clone(&stop), Rc::clone(&stop));
        let timers = spawn_local(async move {
            while !timers.get() {
                sleep(Duration::from_micros(30)).await;
            }
        });
        let calls = spawn_local(async move {
            while !calls.get() {
                executor().spawn_blocking(|| ()).await;
            }
        });
        counter.serve(hunts).await;
        stop.set(true);
        timers.await;
        calls.await;
    });
    thread.join().expect("all were answered");
}

#[run_test]
async fn a_hundred_thousand_wakes_without_answers_end_in_one_that_counts() {
    let counter = Arc::new(Counter::default());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || (0..25_000).for_each(|_| _ = counter.raise()))
        })
        .collect();
    counter.serve(100_000).await;
    for thread in threads {
        thread.join().expect("raising does not panic");
    }
}

#[run_test]
async fn strangers_that_never_stop_waking_do_not_keep_timers_out() {
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let parking = Parking::default();
            spawn_local(parking.clone()).detach();
            let waker = parking.waker().expect("spawned tasks are polled at once");
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    waker.wake_by_ref();
                }
            })
        })
        .collect();
    for _ in 0..10 {
        sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().expect("waking does not panic");
    }
}

#[run_test]
async fn thousands_of_tasks_woken_at_once_from_elsewhere_all_run() {
    let is_open = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel::<Waker>();
    let tasks: Vec<_> = (0..10_000)
        .map(|_| {
            let (is_open, sender) = (Arc::clone(&is_open), sender.clone());
            spawn_local(poll_fn(move |cx| {
                if is_open.load(Ordering::SeqCst) {
                    return Poll::Ready(());
                }
                sender
                    .send(cx.waker().clone())
                    .expect("the waking thread receives");
                Poll::Pending
            }))
        })
        .collect();
    let thread = thread::spawn(move || {
        is_open.store(true, Ordering::SeqCst);
        // Each waker once.
        receiver.try_iter().for_each(Waker::wake);
    });
    thread.join().expect("waking does not panic");
    join_all(tasks).await;
}
