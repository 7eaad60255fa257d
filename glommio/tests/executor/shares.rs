//! How queues share the executor's time.

use crate::common::prelude::*;

/// Computes in turns of `turn`, each followed by a yield of the queue, and adds up its CPU time.
struct Worker {
    time: Rc<Cell<Duration>>,
    _task: Task<()>,
}

impl Worker {
    fn start(shares: Shares, turn: Duration) -> Worker {
        let queue = executor().create_task_queue(shares, Latency::NotImportant, "worker");
        Worker::start_in(queue, turn)
    }

    fn start_in(queue: TaskQueueHandle, turn: Duration) -> Worker {
        let yields = async || executor().yield_task_queue_now().await;
        Worker::spawn(queue, move || compute(turn), yields)
    }

    /// Computes until it is told to yield.
    fn cooperate(shares: usize) -> Worker {
        let yields = async || yield_if_needed().await;
        Worker::spawn(queue(shares), spin_until_preempted, yields)
    }

    fn spawn(
        queue: TaskQueueHandle,
        computes: impl Fn() + 'static,
        yields: impl AsyncFn() + 'static,
    ) -> Worker {
        let time = Rc::new(Cell::new(Duration::ZERO));
        let total = Rc::clone(&time);
        let work = async move {
            loop {
                let started = thread_cpu();
                computes();
                total.set(total.get() + thread_cpu() - started);
                yields().await;
            }
        };
        Worker {
            time,
            _task: spawn_in(queue, work),
        }
    }
}

/// The part of the time that the first worker had, in percent, since the last call.
fn part(workers: &[Worker; 2]) -> f64 {
    let [first, second] = workers
        .each_ref()
        .map(|worker| worker.time.take().as_secs_f64());
    100.0 * first / (first + second)
}

/// Tries until it comes out right, for a while: on a busy machine a window may hold little of the
/// CPU, too little for turns to add up. A scheduler that is wrong is wrong in all tries.
async fn sooner_or_later(mut attempt: impl AsyncFnMut() -> Result<(), String>) {
    // All of them end before the watchdog loses its patience.
    const ATTEMPTS: usize = 40;
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        last = attempt().await;
        if last.is_ok() {
            return;
        }
    }
    panic!("{last:?}, and nothing better in {ATTEMPTS} attempts");
}

/// In some window of `window`, or a longer one on a slow machine, the first worker has `due` percent
/// of the time, give or take `tolerance`.
async fn split(workers: &[Worker; 2], mut window: Duration, due: f64, tolerance: f64) {
    let longest = patient(window);
    sooner_or_later(async || {
        part(workers);
        sleep(window).await;
        window = longest.min(window * 2);
        let part = part(workers);
        if (part - due).abs() <= tolerance {
            Ok(())
        } else {
            Err(format!("{part} % instead of {due} %"))
        }
    })
    .await;
}

const A_SECOND: Duration = Duration::from_secs(1);

/// Within five percent of the tenth.
#[test]
fn a_hundred_and_nine_hundred_shares_split_a_second_ten_to_ninety() {
    let turn = Duration::from_millis(1);
    run(async {
        let workers = [100, 900].map(|it| Worker::start(Shares::Static(it), turn));
        split(&workers, A_SECOND, 10.0, 0.5).await;
    });
    // Slices end such turns that do not end by themselves.
    let _watchdog = watchdog();
    let executor = with_slices_of(turn);
    executor.run(async {
        let workers = [100, 900].map(Worker::cooperate);
        split(&workers, A_SECOND, 10.0, 0.5).await;
    });
}

/// With the default slices of 100 ms the tenth is a turn of 10 ms in each 100.
#[run_test]
async fn cooperating_queues_get_slices_by_their_shares() {
    let workers = [100, 900].map(Worker::cooperate);
    split(&workers, A_SECOND, 10.0, 2.0).await;
}

/// A task of `light` has some turns, in which it computes by `computes`, beside others that ran for
/// `elsewhere` so far. The longest that they ran between two of its turns, or the first time that is
/// longer than `most`.
async fn longest_wait(
    light: TaskQueueHandle,
    computes: impl Fn() + 'static,
    elsewhere: Rc<Cell<Duration>>,
    most: Duration,
) -> Duration {
    let waits = async move {
        let mut longest = Duration::ZERO;
        for _ in 0..5 {
            computes();
            let before = elsewhere.get();
            executor().yield_task_queue_now().await;
            longest = longest.max(elsewhere.get() - before);
            if longest > most {
                break;
            }
        }
        longest
    };
    spawn_in(light, waits).await
}

#[test]
fn a_queue_of_few_shares_runs_several_times_a_second() {
    run(sooner_or_later(async || {
        let heavy = Worker::cooperate(1000);
        let computes = spin_until_preempted;
        // Slices are longer where timers of the kernel are late, and so is what a queue owes for one.
        let most = patient(3 * A_SECOND / 10);
        let longest = longest_wait(queue(10), computes, Rc::clone(&heavy.time), most).await;
        if longest <= most {
            Ok(())
        } else {
            Err(format!("it waited for {longest:?} of the other"))
        }
    }));
}

#[run_test]
async fn a_queue_whose_turns_are_too_long_waits_for_a_second_at_most() {
    let heavy = Worker::cooperate(1000);
    // Fifty seconds at weight 1, each time.
    let computes = || compute(Duration::from_millis(50));
    let most = 3 * A_SECOND / 2;
    let longest = longest_wait(queue(1), computes, Rc::clone(&heavy.time), most).await;
    assert!(longest <= most, "{longest:?}");
}

#[run_test]
async fn queues_that_run_in_turn_do_not_keep_a_third_from_running() {
    let time = Rc::new(Cell::new(Duration::ZERO));
    let (to_first, first) = local_channel::new_unbounded();
    let (to_second, second) = local_channel::new_unbounded();
    to_first.try_send(()).expect("it is open");
    let in_turn = [(first, to_second), (second, to_first)].map(|(mine, other)| {
        let time = Rc::clone(&time);
        // One of them wants to run, at any time, and each is away as long as it runs.
        let work = async move {
            while time.get() < 3 * A_SECOND && mine.recv().await.is_some() {
                let started = thread_cpu();
                compute(Duration::from_millis(2));
                time.set(time.get() + thread_cpu() - started);
                _ = other.try_send(());
            }
        };
        spawn_in(queue(1000), work)
    });
    // Ten milliseconds at weight 100, each time.
    let computes = || compute(Duration::from_millis(1));
    let most = 3 * A_SECOND / 2;
    let longest = longest_wait(queue(100), computes, Rc::clone(&time), most).await;
    assert!(longest <= most, "{longest:?}");
    drop(in_turn);
}

#[run_test]
async fn turns_of_different_length_get_the_same_time() {
    let workers = [1, 5].map(|ms| Worker::start(Shares::Static(500), Duration::from_millis(ms)));
    split(&workers, A_SECOND, 50.0, 10.0).await;
}

#[run_test]
async fn a_queue_alone_gets_everything() {
    let worker = Worker::start(Shares::Static(1), Duration::from_micros(500));
    let started = Instant::now();
    let cpu = thread_cpu();
    sleep(Duration::from_millis(300)).await;
    let (elapsed, cpu) = (started.elapsed(), thread_cpu() - cpu);
    // Of the time that this thread had: other tests run beside it.
    assert!(
        worker.time.get() * 2 > cpu,
        "{:?} of {elapsed:?}",
        worker.time
    );
}

#[run_test]
async fn dynamic_shares_are_followed() {
    struct Rising(Cell<usize>);
    impl SharesManager for Rising {
        fn shares(&self) -> usize {
            self.0.get()
        }
        fn adjustment_period(&self) -> Duration {
            Duration::from_millis(1)
        }
    }
    let rising = Rc::new(Rising(Cell::new(1)));
    let turn = Duration::from_micros(500);
    let workers = [
        Worker::start(Shares::Dynamic(rising.clone()), turn),
        Worker::start(Shares::Static(1000), turn),
    ];
    split(&workers, A_SECOND, 0.0, 10.0).await;
    rising.0.set(1000);
    // What it was charged at its low weight is paid off first: a turn at weight 1 counts 1000
    // times, half a second for half a millisecond, and more if the machine took its time.
    split(&workers, A_SECOND / 2, 50.0, 15.0).await;
}

#[run_test]
async fn shares_are_read_when_the_queue_is_made_and_again_when_the_period_is_over() {
    const PERIOD: Duration = Duration::from_millis(20);
    struct Counts(Cell<u32>);
    impl SharesManager for Counts {
        fn shares(&self) -> usize {
            self.0.set(self.0.get() + 1);
            100
        }
        fn adjustment_period(&self) -> Duration {
            PERIOD
        }
    }
    let counts = Rc::new(Counts(Cell::new(0)));
    let begun = Instant::now();
    let worker = Worker::start(Shares::Dynamic(counts.clone()), Duration::from_millis(1));
    assert_eq!(counts.0.get(), 1);
    while counts.0.get() < 5 {
        sleep(Duration::from_millis(5)).await;
        let read = counts.0.get();
        let elapsed = begun.elapsed();
        assert!(elapsed >= PERIOD * (read - 1), "{read} in {elapsed:?}");
    }
    drop(worker);
}

/// Uses much more of the time than weight 1 is due: one turn of `turn` beside a competitor.
async fn run_into_debt(light: TaskQueueHandle, turn: Duration) {
    // Ends with its turn, so the queue goes away with all its debt.
    let task = spawn_in(light, async move { compute(turn) });
    task.await;
}

/// How long a task of `queue` waits for its turn.
async fn wait_for_a_turn(queue: TaskQueueHandle) -> Duration {
    let started = Instant::now();
    spawn_in(queue, async {}).await;
    started.elapsed()
}

fn queue(shares: usize) -> TaskQueueHandle {
    executor().create_task_queue(Shares::Static(shares), Latency::NotImportant, "")
}

const SHORT: Duration = Duration::from_micros(100);

#[run_test]
async fn a_queue_does_not_wait_for_what_it_used_before_everybody_slept() {
    let (light, heavy) = (queue(1), queue(1000));
    let competitor = Worker::start_in(heavy, SHORT);
    // Twenty seconds at weight 1.
    run_into_debt(light, Duration::from_millis(20)).await;
    drop(competitor);
    sleep(Duration::from_millis(20)).await;
    let competitor = Worker::start_in(heavy, SHORT);
    while competitor.time.get().is_zero() {
        sleep(Duration::from_millis(1)).await;
    }
    let waited = wait_for_a_turn(light).await;
    assert!(waited < patient(Duration::from_secs(5)), "{waited:?}");
}

#[test]
fn a_queue_pays_off_what_it_used_while_it_is_away() {
    run(sooner_or_later(async || {
        let (light, heavy) = (queue(1), queue(1000));
        let _competitor = Worker::start_in(heavy, SHORT);
        // Two seconds at weight 1, and the competitor never stops.
        run_into_debt(light, Duration::from_millis(2)).await;
        sleep(Duration::from_millis(2500)).await;
        let waited = wait_for_a_turn(light).await;
        if waited < A_SECOND {
            Ok(())
        } else {
            Err(format!("it waited {waited:?}"))
        }
    }));
}

/// As it is when the process was stopped, or the machine asleep, in the middle of a turn.
#[run_test]
async fn a_queue_whose_thread_stood_still_is_not_held_back_for_as_long() {
    let (light, heavy) = (queue(100), queue(900));
    let _competitor = Worker::start_in(heavy, SHORT);
    let stands_still = async { std::thread::sleep(Duration::from_secs(3)) };
    spawn_in(light, stands_still).await;
    let cpu = thread_cpu();
    wait_for_a_turn(light).await;
    let waited = thread_cpu() - cpu;
    // 27 s of the competitor's would be its share of the three seconds.
    assert!(waited < Duration::from_secs(9), "{waited:?}");
}
