//! Executors that may wake a little late, and once for many timers.

use glommio::timer::timeout;

use crate::common::prelude::*;
use crate::harness::{HOUR, expiry, hog_until, ms, poll, shared};
use crate::idle::voluntary_switches;

/// Runs what `test` makes in an executor with that much slack, whose slices never end by
/// themselves.
fn run_with(slack: Duration, test: impl AsyncFnOnce()) {
    with_watchdog(|| executor_with(slack).run(test()));
}

fn executor_with(slack: Duration) -> LocalExecutor {
    LocalExecutorBuilder::default()
        .timer_slack(slack)
        .preempt_timer(Duration::from_secs(600))
        .make()
        .expect("the slack is within its limit")
}

const SLACKS: [Duration; 4] = [Duration::ZERO, Duration::from_micros(100), ms(5), ms(200)];

#[test]
fn never_early_and_in_order_of_deadline() {
    for slack in SLACKS {
        run_with(slack, async || {
            for count in [40, 2000] {
                let mut lead = ms(20);
                while !fire_in_order(count, lead).await {
                    lead *= 2;
                }
            }
        });
    }
}

/// Arms `count` actions for scattered instants, the first of them after `lead`, and waits for all
/// of them. False if that was not enough time to arm them all: then they need not come in order.
async fn fire_in_order(count: u64, lead: Duration) -> bool {
    let mut numbers = Numbers::new(count);
    let fired = Log::default();
    let first = Instant::now() + lead;
    let actions: Vec<_> = (0..count)
        .map(|_| {
            let fired = fired.clone();
            let deadline = first + Duration::from_micros(numbers.below(20_000));
            TimerActionOnce::do_at(deadline, async move {
                assert!(Instant::now() >= deadline, "early");
                fired.push(deadline);
            })
        })
        .collect();
    executor().yield_now().await;
    let in_time = Instant::now() < first;
    for action in actions {
        assert_eq!(action.join().await, Some(()));
    }
    assert!(fired.entries().is_sorted() || !in_time);
    in_time
}

/// The waits are counted, not the time: each wake-up that is saved is one that does not happen.
#[run_test(run_with(ms(900)))]
async fn many_deadlines_within_the_slack_are_one_wait() {
    // A first one, so that whatever is done once is done.
    sleep(ms(1)).await;
    let before = voluntary_switches();
    let sleepers: Vec<_> = (0..400)
        .map(|n| spawn_local(sleep(ms(5) + ms(n) / 2)))
        .collect();
    join_all(sleepers).await;
    let waits = voluntary_switches() - before;
    assert!(waits <= 10, "{waits} waits for 400 deadlines");
}

/// Two deadlines with some room between them: the first task runs while the second is not yet due.
/// A busy machine may be late for both now and then, slack would be so always.
#[run_test]
fn without_slack_each_deadline_has_its_own_wait() {
    for executor in [LocalExecutor::default(), executor_with(Duration::ZERO)] {
        executor.run(async {
            loop {
                let second = Instant::now() + ms(2);
                let first = spawn_local(async move {
                    Timer::new(ms(1)).await;
                    Instant::now() < second
                });
                let last = spawn_local(Timer::new(ms(2)));
                let has_been_in_time = first.await;
                last.await;
                if has_been_in_time {
                    break;
                }
            }
        });
    }
}

/// With slack it is the other way round: the first has to wait for the second, unless the machine
/// stood still until the first was due.
#[run_test(run_with(ms(500)))]
async fn with_slack_a_deadline_waits_for_the_next() {
    for attempt in 1.. {
        let second = shared(Timer::new(ms(60)));
        let first = spawn_local({
            let second = second.clone();
            async move {
                sleep(ms(20)).await;
                poll(&mut second.borrow_mut(), Waker::noop()).is_ready()
            }
        });
        let waited = first.await;
        expiry(&second).await;
        if waited {
            break;
        }
        assert!(attempt < 20, "an idle executor woke for the first alone");
    }
}

/// All that has a deadline is a timer.
#[test]
fn limits_are_not_early_either() {
    for slack in SLACKS {
        run_with(slack, async || {
            let (limit, start) = (ms(3), Instant::now());
            let result = timeout(limit, async {
                sleep(HOUR).await;
                Ok(())
            });
            assert!(matches!(result.await, Err(GlommioError::TimedOut(it)) if it == limit));
            assert!(start.elapsed() >= limit);

            let socket = glommio::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
            socket.set_read_timeout(Some(limit)).expect("it is no zero");
            let start = Instant::now();
            let received = socket.recv_from(&mut [0; 8]).await;
            assert!(received.is_err() && start.elapsed() >= limit);
        });
    }
}

/// Beside a task that computes and asks, the slice ends by the slack after the deadline, though
/// nothing else would end it.
#[test]
fn a_busy_executor_comes_to_its_timers_all_the_same() {
    for slack in SLACKS {
        run_with(slack, async || {
            let load = spawn_local(async {
                // Not inside `spawn_local`, which polls at once.
                executor().yield_now().await;
                loop {
                    executor().yield_if_needed().await;
                }
            });
            for wait in [Duration::from_micros(1), ms(1), ms(10)] {
                let start = Instant::now();
                sleep(wait).await;
                assert!(start.elapsed() >= wait);
            }
            load.cancel().await;
        });
    }
}

/// Due while the task ran on: there is no sleep to be saved. The one that is not yet due stays.
#[run_test(run_with(ms(900)))]
async fn what_is_due_already_does_not_wait_for_others() {
    let mut later = Timer::new(HOUR);
    assert!(poll(&mut later, Waker::noop()).is_pending());
    let before = voluntary_switches();
    for _ in 0..50 {
        let due = Instant::now() + Duration::from_micros(50);
        let sleeper = spawn_local(sleep(Duration::from_micros(50)));
        hog_until(due + ms(1));
        sleeper.await;
    }
    let waits = voluntary_switches() - before;
    assert!(waits <= 10, "{waits} waits where none was called for");
}
