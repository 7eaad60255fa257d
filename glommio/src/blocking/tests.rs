//! How many threads an elastic pool has, and what a call that is given up holds.

use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use futures_lite::future::{block_on, poll_once};

use super::*;

/// An executor that does not run.
struct NotRunning;

impl RetryTimer for NotRunning {
    fn is_in_round(&self) -> bool {
        false
    }

    fn retry_after(&self, _wait: Duration) {}

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

fn one_thread() -> PoolSettings {
    PoolSettings {
        thread_name: String::from("test"),
        affinity: vec![None],
    }
}

fn hasty(idle: Duration) -> Pool {
    elastic(Duration::from_millis(1), idle)
}

fn elastic(patience: Duration, idle: Duration) -> Pool {
    let growth = Growth {
        threads_max: 8,
        patience,
        idle,
    };
    Pool::new(Threads::elastic(one_thread(), growth), Rc::new(NotRunning))
}

/// So many calls that end when all of them run.
fn meet(pool: &Rc<Pool>, count: usize) {
    let barrier = Arc::new(Barrier::new(count));
    let calls = (0..count).map(|_| {
        let barrier = Arc::clone(&barrier);
        BlockingCall::new(Rc::clone(pool), move || _ = barrier.wait(), true)
    });
    block_on(async {
        let mut left = Vec::new();
        for mut call in calls {
            // The last of them may be over at once.
            if poll_once(&mut call).await.is_none() {
                left.push(call);
            }
        }
        for call in left {
            call.await.expect("there are threads");
        }
    });
}

fn wait_until(holds: impl Fn() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn threads_of_an_elastic_pool_end_when_they_have_been_idle_but_for_one() {
    let pool = Rc::new(hasty(Duration::from_millis(20)));
    for count in [8, 3, 8] {
        meet(&pool, count);
        wait_until(|| {
            let state = pool.shared.lock();
            state.threads == 1 && state.reserve.is_none() && state.idle.len() == 1
        });
    }
    let mut panics = FirstPanic::default();
    pool.close(&mut panics);
    wait_until(|| Arc::strong_count(&pool.shared) == 1);
}

/// The thread that had a call last has the next one, so that the others have been idle for long.
#[test]
fn threads_that_are_not_needed_rest_while_calls_come() {
    let pool = Rc::new(hasty(Duration::from_millis(50)));
    meet(&pool, 8);
    wait_until(|| {
        let call = BlockingCall::new(Rc::clone(&pool), || (), true);
        block_on(call).expect("there are threads");
        pool.shared.lock().threads == 1
    });
}

#[test]
fn calls_that_do_not_wait_for_long_are_all_made_by_one_thread() {
    let pool = Rc::new(elastic(
        Duration::from_secs(3600),
        Duration::from_secs(3600),
    ));
    let mut first = None;
    for _ in 0..200 {
        // Handed over together, and one after the other.
        let calls: Vec<_> = (0..5)
            .map(|_| BlockingCall::new(Rc::clone(&pool), || thread::current().id(), true))
            .collect();
        let ids = block_on(async {
            let mut ids = Vec::new();
            let mut left = Vec::new();
            for mut call in calls {
                match poll_once(&mut call).await {
                    Some(id) => ids.push(id),
                    None => left.push(call),
                }
            }
            for call in left {
                ids.push(call.await);
            }
            ids
        });
        for id in ids {
            let id = id.expect("there is a thread");
            assert_eq!(*first.get_or_insert(id), id);
        }
        // That one, and at most the one that watches.
        assert!(pool.shared.lock().threads <= 2);
    }
}

/// Sends when it is dropped.
struct Told(mpsc::Sender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A file that it holds would stay open otherwise, until a thread comes to it.
#[test]
fn a_question_that_is_given_up_holds_nothing_from_then_on() {
    let pool = BlockingPool::new(one_thread(), Rc::new(NotRunning));
    let (go_on, told) = mpsc::channel::<()>();
    let (note, dropped) = mpsc::channel();
    block_on(async {
        let mut busy = pool.call(move || told.recv().expect("the test goes on"));
        assert!(poll_once(&mut busy).await.is_none());
        let held = Told(note);
        let mut given_up = pool.ask(move || drop(held));
        assert!(poll_once(&mut given_up).await.is_none());
        assert!(dropped.try_recv().is_err());
        drop(given_up);
        assert_eq!(dropped.try_recv(), Ok(()), "while the thread is busy");
        go_on.send(()).expect("the call waits");
        busy.await.expect("there is a thread");
        // The thread comes to what is left of the other one, and lives.
        assert_eq!(pool.ask(|| 7).await.expect("there is a thread"), 7);
    });
    assert!(dropped.recv().is_err(), "once");
}
