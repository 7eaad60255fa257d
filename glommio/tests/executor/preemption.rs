//! How many polls begin after something has happened that the executor should look at, and how soon
//! it looks.

use std::hint::spin_loop;
use std::io::Write;
use std::os::unix::net;

use crate::common::prelude::*;

/// The shortest slice, and the time from which a round notices what the kernel has completed.
const SHORTEST: Duration = Duration::from_micros(20);

/// The poll in which it happens, counted from the first of a round: where checks lie apart, they
/// miss some.
const NUMBERS: std::ops::Range<usize> = 1..26;

fn queue(latency: Latency) -> TaskQueueHandle {
    executor().create_task_queue(Shares::default(), latency, "")
}

fn compute(time: Duration) {
    let started = Instant::now();
    while started.elapsed() <= time {
        spin_loop();
    }
}

/// Returns when the executor has had nothing to run. All queues are level then, and one that is
/// woken goes before one that has just run.
async fn idle() {
    loop {
        executor().executor_stats();
        sleep(Duration::from_millis(1)).await;
        let stats = executor().executor_stats();
        // A look for a queue that finds one is followed by a poll.
        if stats.scheduler_runs() > stats.tasks_executed() {
            return;
        }
    }
}

/// Two tasks are polled in turn, for `poll` each time, and `happen` is called in the `number`th
/// poll. Returns how many more begin before `wait` is over, which is what a task of another queue
/// waits for.
async fn polls_after(
    number: usize,
    poll: Duration,
    wait: impl Future<Output = ()> + 'static,
    happen: impl FnOnce() + 'static,
) -> usize {
    let polls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&polls);
    let waits = async move {
        wait.await;
        counted.get()
    };
    let waiting = spawn_local_into(waits, queue(Latency::NotImportant));
    idle().await;
    let (busy, happen) = (
        queue(Latency::NotImportant),
        Rc::new(Cell::new(Some(happen))),
    );
    let tasks = [(); 2].map(|()| {
        let (polls, happen) = (Rc::clone(&polls), Rc::clone(&happen));
        let work = async move {
            loop {
                polls.set(polls.get() + 1);
                compute(poll);
                if polls.get() == number {
                    happen.take().expect("a number comes once")();
                }
                executor().yield_now().await;
            }
        };
        spawn_in(busy, work)
    });
    let noted = waiting.expect("it was just made").await;
    drop(tasks);
    noted.saturating_sub(number)
}

#[test]
fn no_poll_begins_between_a_foreign_wake_and_the_task_that_it_woke() {
    for number in NUMBERS {
        let more = run(async {
            let (waker, is_woken) = (Rc::new(Cell::new(None)), Arc::new(AtomicBool::new(false)));
            let (waits, wakes) = (Rc::clone(&waker), Arc::clone(&is_woken));
            let wait = poll_fn(move |cx| {
                waits.set(Some(cx.waker().clone()));
                if is_woken.load(Ordering::SeqCst) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            });
            let happen = move || {
                let waker: Waker = waker.take().expect("it waits");
                let other = thread::spawn(move || {
                    wakes.store(true, Ordering::SeqCst);
                    waker.wake();
                });
                other.join().expect("it only wakes");
            };
            polls_after(number, Duration::ZERO, wait, happen).await
        });
        assert_eq!(more, 0, "woken in poll {number}");
    }
}

#[test]
fn no_poll_begins_between_a_completion_and_the_task_that_it_woke() {
    for number in NUMBERS {
        let more = run(async {
            let (mut near, far) = net::UnixStream::pair().expect("two descriptors are free");
            let mut far = UnixStream::from(far);
            let wait = async move {
                far.read_exact(&mut [0]).await.expect("a byte comes");
            };
            let happen = move || near.write_all(b"!").expect("there is room");
            polls_after(number, 2 * SHORTEST, wait, happen).await
        });
        assert_eq!(more, 0, "completed in poll {number}");
    }
}

#[test]
fn no_poll_begins_between_a_deadline_and_the_task_that_it_woke() {
    for number in NUMBERS {
        // The interrupt that says so may itself be late.
        let once = || {
            run(async {
                let wait = Duration::from_millis(30);
                let deadline = Instant::now() + wait;
                let happen = move || {
                    let rest = deadline.saturating_duration_since(Instant::now());
                    compute(rest + 10 * SHORTEST);
                };
                let timer = Timer::new(wait);
                polls_after(number, 5 * SHORTEST, async { _ = timer.await }, happen).await
            })
        };
        let is_noticed = std::iter::repeat_with(once).take(10).any(|more| more == 0);
        assert!(is_noticed, "due in poll {number}");
    }
}

#[run_test]
fn no_poll_begins_after_a_task_was_asked_to_stop_and_before_the_executor_has_looked() {
    let made = with_slices_of(Duration::from_millis(2));
    made.run(async {
        // It looks for a queue anew once it has looked at all else.
        let looks = Rc::new(Cell::new(0));
        let look = Rc::new(move || {
            let more = executor().executor_stats().scheduler_runs();
            looks.set(looks.get() + more);
            looks.get()
        });
        let asked = Rc::new(Cell::new(None));
        let busy = queue(Latency::NotImportant);
        let tasks = [(); 3].map(|()| {
            let (look, asked) = (Rc::clone(&look), Rc::clone(&asked));
            let work = async move {
                for poll in 0..100 {
                    if let Some(before) = asked.take() {
                        assert!(look() > before, "asked to stop before poll {poll}");
                    }
                    compute(Duration::from_micros(300));
                    if executor().need_preempt() {
                        asked.set(Some(look()));
                    }
                    executor().yield_now().await;
                }
            };
            spawn_in(busy, work)
        });
        join_all(tasks).await;
    });
}

#[run_test]
fn the_shortest_slice_is_no_shorter_whatever_is_asked_for() {
    let latencies = [
        Latency::NotImportant,
        Latency::Matters(Duration::ZERO),
        Latency::Matters(Duration::from_nanos(1)),
    ];
    for latency in latencies {
        let made = with_slices_of(Duration::from_nanos(1));
        made.run(async {
            let work = async move {
                let wait_for_the_end = spin_until_preempted;
                wait_for_the_end();
                for _ in 0..100 {
                    // Before the round that begins once the executor has looked.
                    let before = Instant::now();
                    glommio::yield_if_needed().await;
                    wait_for_the_end();
                    let slice = before.elapsed();
                    assert!(slice >= SHORTEST, "{latency:?}: {slice:?}");
                }
            };
            let task = spawn_local_into(work, queue(latency));
            task.expect("it was just made").await;
        });
    }
}
