//! What executors count, as other threads read it.

use std::io::Write;

use glommio::io::PollableFd;
use glommio::metrics::{self, ExecutorMetrics, Histogram, Snapshot};
use glommio::net::{DatagramPool, Segments};
use glommio::timer::{DelayQueue, sleep_until};

use crate::common::prelude::*;

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;
mod fork;
mod prometheus;

const FAR: Duration = Duration::from_secs(3600);

/// Runs `future` on a new executor. What it has counted by then.
fn counted(future: impl Future<Output = ()>) -> Snapshot {
    let _watchdog = watchdog();
    let executor = LocalExecutor::default();
    executor.run(future);
    executor.metrics().snapshot()
}

/// Waits until `condition` holds of what the metrics say.
fn await_that(metrics: &ExecutorMetrics, condition: impl Fn(&Snapshot) -> bool) {
    while !condition(&metrics.snapshot()) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A timer that waits.
async fn armed(deadline: Instant) -> Timer {
    let mut timer = Timer::at(deadline);
    assert!(poll_once(&mut timer).await.is_none());
    timer
}

#[test]
fn timers_are_counted_by_what_becomes_of_them() {
    let mut live = 0;
    let now = counted(async {
        let start = Instant::now();
        let mut timers = Vec::new();
        for _ in 0..10 {
            timers.push(armed(start + FAR).await);
        }
        for timer in &mut timers[..3] {
            timer.reset_at(start + 2 * FAR);
        }
        drop(timers.drain(..4));
        let now = executor().metrics().snapshot();
        assert_eq!((now.timers_armed, now.timers_rearmed), (10, 3));
        assert_eq!((now.timers_cancelled, now.timers_fired), (4, 0));
        assert_eq!(now.timers_live(), 6);
        assert_eq!(now.timer_lateness.count(), 0);
        // Armed before any of them is due, however slowly.
        let deadline = Instant::now() + Duration::from_millis(100);
        let sleeping: Vec<_> = (0..300)
            .map(|_| spawn_local(sleep_until(deadline)))
            .collect();
        join_all(sleeping).await;
        let now = executor().metrics().snapshot();
        assert_eq!((now.timers_armed, now.timers_fired), (310, 300));
        assert_eq!(now.timer_lateness.count(), 300);
        live = now.timers_live();
    });
    assert_eq!(live, 6);
    assert_eq!(now.timers_cancelled, 10, "the timers were dropped");
    assert_eq!(now.timers_live(), 0);
}

/// The items of a `DelayQueue` share one timer, which follows the earliest.
#[test]
fn a_delay_queue_counts_as_one_timer() {
    let now = counted(async {
        let queue = DelayQueue::new();
        let start = Instant::now();
        (1..=10).for_each(|n| _ = queue.insert_at(n, start + n * FAR));
        assert!(poll_once(queue.next_expired()).await.is_none());
        assert_eq!(executor().metrics().snapshot().timers_live(), 1);
        queue.insert_at(0, start);
        assert_eq!(queue.next_expired().await.into_inner(), 0);
        assert!(executor().metrics().snapshot().timers_live() <= 1);
    });
    assert_eq!(now.timers_live(), 0);
}

#[run_test]
fn timers_that_are_armed_when_the_executor_is_dropped_are_cancelled() {
    let executor = LocalExecutor::default();
    let far = Instant::now() + FAR;
    let timers = executor.run(async { [armed(far).await, armed(far).await, armed(far).await] });
    let metrics = executor.metrics();
    assert_eq!(metrics.snapshot().timers_live(), 3);
    drop(executor);
    assert_eq!(metrics.snapshot().timers_live(), 0);
    drop(timers);
    assert_eq!(metrics.snapshot().timers_cancelled, 3, "each once");
}

#[test]
fn a_blocked_thread_shows_in_the_lateness_and_as_an_overrun() {
    const BLOCKED: Duration = Duration::from_millis(20);
    let now = counted(async {
        let start = Instant::now();
        let sleeping = spawn_local(sleep_until(start + Duration::from_millis(5)));
        yield_now().await;
        let before = executor().metrics().snapshot();
        if before.timers_armed == 0 {
            return; // The machine stood still, and it was due at once.
        }
        thread::sleep(BLOCKED);
        sleeping.await;
        let after = executor().metrics().snapshot();
        assert!(after.slice_overruns > before.slice_overruns);
        let late = after.timer_lateness.since(&before.timer_lateness);
        assert_eq!(late.count(), 1);
        assert!(late.max() >= BLOCKED - Duration::from_millis(5), "{late:?}");
        assert_eq!(late.quantile(0.0), late.max());
    });
    assert!(now.turns > 0);
}

/// Also if nothing is left to do afterwards.
#[test]
fn an_overrun_before_a_sleep_counts() {
    counted(async {
        let before = executor().metrics().snapshot().slice_overruns;
        // The slice is a hundred milliseconds; a timer ends it before.
        spawn_local(sleep(Duration::from_millis(2))).detach();
        thread::sleep(Duration::from_millis(10));
        sleep(Duration::from_millis(5)).await;
        assert!(executor().metrics().snapshot().slice_overruns > before);
    });
}

/// A timer that is moved to a deadline in the past ends the round, which was not too long until then. That
/// the thread has to wait for a core in between would be bad luck, so it has some tries.
#[test]
fn a_round_that_is_ended_by_what_is_overdue_was_not_too_long() {
    const LONG: Duration = Duration::from_millis(5);
    let is_counted = |arm: fn(&mut Timer, Instant)| {
        let mut overruns = 0;
        counted(async {
            let mut timer = armed(Instant::now() + FAR).await;
            yield_now().await;
            let before = executor().metrics().snapshot().slice_overruns;
            // Well within the slice of a hundred milliseconds.
            let start = Instant::now();
            while start.elapsed() < LONG {
                std::hint::spin_loop();
            }
            arm(&mut timer, start);
            assert!(executor().need_preempt());
            timer.await;
            overruns = executor().metrics().snapshot().slice_overruns - before;
        });
        overruns > 0
    };
    assert!((0..50).any(|_| !is_counted(Timer::reset_at)));
    // The wake of a task in a queue whose latency is over for long.
    assert!((0..50).any(|_| {
        !is_counted(|timer, _| {
            let latency = Latency::Matters(Duration::from_millis(1));
            let urgent = executor().create_task_queue(Shares::default(), latency, "urgent");
            let task = spawn_local_into(async {}, urgent);
            task.expect("the queue exists").detach();
            timer.reset(Duration::ZERO);
        })
    }));
}

#[test]
fn polls_are_counted_by_who_polls() {
    let now = counted(async {
        for _ in 0..5 {
            spawn_local(async {
                yield_now().await;
                yield_now().await;
            })
            .await;
        }
    });
    assert_eq!(now.first_polls, 5);
    // The future of `run`, and each task twice more.
    assert!(now.polls >= 11, "{now:?}");
    assert_eq!(now.tasks_runnable(), 0);
    assert_eq!(now.polls, now.tasks_queued);
}

#[test]
fn wakes_are_counted_by_where_they_come_from() {
    counted(async {
        let metrics = executor().metrics();
        let before = metrics.snapshot();
        let (sender, receiver) = oneshot::shared();
        let thread = thread::spawn(move || sender.send(7));
        assert_eq!(receiver.await.ok(), Some(7));
        assert!(thread.join().expect("it does not panic").is_ok());
        // Unless it was there at the first poll.
        let (sender, receiver) = oneshot::shared();
        let waiting = spawn_local(receiver);
        let seen = metrics.clone();
        let thread = thread::spawn(move || {
            await_that(&seen, |now| now.parks > before.parks);
            sender.send(8)
        });
        assert_eq!(waiting.await.ok(), Some(8));
        assert!(thread.join().expect("it does not panic").is_ok());
        let after = metrics.snapshot();
        assert!(after.wakes_by_threads > before.wakes_by_threads);

        let (reader, mut writer) = std::io::pipe().expect("descriptors are free");
        let reader = PollableFd::new(reader).expect("it is open");
        let readable = async { reader.readable().await.expect("it is open") };
        let writing = async {
            yield_now().await;
            writer.write_all(b"x").expect("there is room");
        };
        futures_lite::future::zip(readable, writing).await;
        let last = metrics.snapshot();
        assert!(last.wakes_by_io > after.wakes_by_io);
        assert!(last.ring_submissions > after.ring_submissions);
        assert!(last.ring_enters > after.ring_enters);
    });
}

#[test]
fn blocking_calls_are_counted_when_they_begin_and_when_they_end() {
    counted(async {
        let metrics = executor().metrics();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let call = spawn_local(executor().spawn_blocking(move || released.recv().is_err()));
        let waiting = spawn_local(executor().spawn_blocking(|| ()));
        let now = metrics.snapshot();
        assert_eq!((now.blocking_calls, now.blocking_calls_done), (2, 0));
        assert_eq!(now.blocking_calls_live(), 2);
        drop(release);
        assert!(call.await);
        waiting.await;
        await_that(&metrics, |now| now.blocking_calls_live() == 0);
        assert_eq!(metrics.snapshot().blocking_calls, 2);
        assert_eq!(metrics.snapshot().lookups, 0);
    });
}

/// Host names that are looked up, which addresses are not; they are no blocking calls.
#[test]
fn lookups_are_counted_when_they_begin_and_when_they_end() {
    counted(async {
        let metrics = executor().metrics();
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let connected = TcpStream::connect(("127.0.0.1", port)).await;
        connected.expect("it listens");
        assert_eq!(metrics.snapshot().lookups, 0);
        for lookups in 1..=3 {
            let connected = TcpStream::connect(("localhost", port)).await;
            connected.expect("it listens, and the name is known everywhere");
            await_that(&metrics, |now| now.lookups_done == lookups);
            let now = metrics.snapshot();
            assert_eq!((now.lookups, now.blocking_calls), (lookups, 0));
        }
    });
}

#[run_test]
fn another_thread_sees_what_an_executor_does() {
    let (stop, stopped) = oneshot::shared::<()>();
    let (send, received) = std::sync::mpsc::channel();
    let thread = LocalExecutorBuilder::default()
        .name("watched")
        .spawn(move || async move {
            send.send(executor().id()).expect("the test waits");
            let ticking = spawn_local(async {
                loop {
                    sleep(Duration::from_micros(100)).await;
                }
            });
            let _ = stopped.await;
            drop::<glommio::Task<()>>(ticking);
        })
        .expect("a thread is free");
    let id = received.recv().expect("it starts");
    let find = || metrics::executors().into_iter().find(|it| it.id() == id);
    let metrics = find().expect("it is alive");
    assert_eq!(metrics.name(), format!("watched-{id}"));
    let first = metrics.snapshot();
    assert_eq!((first.executor, &*first.name), (id, metrics.name()));
    await_that(&metrics, |now| {
        now.timers_fired >= first.timers_fired + 20
            && now.turns > first.turns
            && now.parks > first.parks
    });
    drop(stop);
    thread.join().expect("it does not panic");
    let end = metrics.snapshot();
    assert!(end.timers_fired >= 20);
    assert_eq!(end.timers_live(), 0);
    assert_eq!(
        metrics.snapshot().turns,
        end.turns,
        "what is gone counts no more"
    );
    assert!(find().is_none(), "it is in the list, and gone");
}

#[run_test]
fn executors_are_listed_in_their_order_while_they_live() {
    let made: Vec<_> = (0..4).map(|_| LocalExecutor::default()).collect();
    let ids: Vec<_> = made.iter().map(LocalExecutor::id).collect();
    let listed = || -> Vec<_> {
        let all = metrics::executors().into_iter().map(|it| it.id());
        all.filter(|id| ids.contains(id)).collect()
    };
    assert_eq!(listed(), ids);
    for (gone, executor) in (1..).zip(made) {
        drop(executor);
        assert_eq!(listed(), ids[gone..]);
    }
}

/// A task that panics leaves the counts readable, and the executor counts on.
#[run_test]
fn counts_go_on_after_a_panic() {
    let executor = LocalExecutor::default();
    let metrics = executor.metrics();
    common::panic_of(|| executor.run(async { panic!("as planned") }));
    let before = metrics.snapshot().polls;
    executor.run(async {
        let begin = Instant::now();
        poll_fn(|cx| {
            cx.waker().wake_by_ref();
            if begin.elapsed() > Duration::from_millis(1) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    });
    assert!(metrics.snapshot().polls > before);
}

#[test]
fn metrics_may_go_to_any_thread() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<ExecutorMetrics>();
    is_shared::<Snapshot>();
    is_shared::<Histogram>();
}

#[test]
fn datagrams_are_counted_and_receives_that_wait_for_a_buffer() {
    let now = counted(async {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let to = receiver.local_addr().expect("it is bound");
        receiver.set_gro(true).expect("the kernel has GRO");
        let pool = DatagramPool::new(1, DatagramPool::MAX_BYTES);
        let mut received = Vec::new();
        for bytes in [&[7; 3_000][..], b"", b"last"] {
            let segments = Segments::new(bytes, 1_200).to(to);
            sender.send_segments(&segments).await.expect("it is sent");
        }
        let mut count = 0;
        while count < 5 {
            let one = receiver.recv_many(&pool, &mut received).await;
            assert_eq!(one.expect("it is there"), 1);
            count += received[0].segments().len();
            if count == 5 {
                break;
            }
            // The only buffer is in use.
            let none = poll_once(receiver.recv_many(&pool, &mut Vec::new())).await;
            assert!(none.is_none());
            received.clear();
        }
        received.clear();
        let error = receiver.try_recv_many(&pool, &mut received);
        assert!(error.is_err());
        assert!(pool.pauses() >= 2);
        let now = executor().metrics().snapshot();
        assert_eq!(now.datagram_pauses, pool.pauses());
    });
    assert_eq!(now.datagrams_received, 5);
}
