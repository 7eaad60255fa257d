//! Timers and actions that are pending when their executor goes.

use std::sync::mpsc::{Sender, channel};
use std::thread::ThreadId;

use glommio::timer::timeout;

use crate::common::hooks::on_drop;
use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, ms, poll};

/// Where and under which executor it was dropped; uses timers on the way out.
struct Witness {
    log: Log<(ThreadId, usize)>,
    timer: Timer,
}

impl Witness {
    fn new(log: &Log<(ThreadId, usize)>) -> Self {
        let mut timer = Timer::new(HOUR);
        let _ = poll(&mut timer, Waker::noop());
        Witness {
            log: log.clone(),
            timer,
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.log.push((thread::current().id(), executor().id()));
        self.timer.reset(ms(1));
        let mut late = Timer::new(Duration::ZERO);
        assert!(poll(&mut late, Waker::noop()).is_ready());
        let mut never = Timer::new(HOUR);
        assert!(poll(&mut never, Waker::noop()).is_pending());
        // Neither runs: the executor takes no new work to its end.
        drop(TimerActionOnce::do_in(Duration::ZERO, async {
            unreachable!("closed")
        }));
        drop(spawn_local(async { unreachable!("closed") }));
    }
}

/// Each kind of pending thing, in the inline stage and in the wheel.
#[run_test]
fn everything_pending_is_dropped_once_with_the_executor_current() {
    for copies in [1, 400] {
        let log = Log::default();
        let local = LocalExecutor::default();
        let id = local.id();
        local.run(async {
            for _ in 0..copies {
                leave_pending(&log);
            }
            executor().yield_now().await;
        });
        assert_eq!(log.len(), 0);
        drop(local);
        let here = (thread::current().id(), id);
        assert_eq!(log.entries(), vec![here; 4 * copies]);
    }
}

fn leave_pending(log: &Log<(ThreadId, usize)>) {
    let witness = Witness::new(log);
    spawn_local(async move {
        sleep(HOUR).await;
        drop(witness);
    })
    .detach();

    let witness = Witness::new(log);
    drop(TimerActionOnce::do_in(HOUR, async move { drop(witness) }));

    let witness = Rc::new(RefCell::new(Some(Witness::new(log))));
    drop(TimerActionRepeat::repeat(move || {
        let witness = Rc::clone(&witness);
        async move {
            assert!(witness.borrow().is_some());
            Some(HOUR)
        }
    }));

    let witness = Witness::new(log);
    spawn_local(async move {
        let _ = timeout(HOUR, async move {
            sleep(2 * HOUR).await;
            drop(witness);
            Ok(())
        })
        .await;
    })
    .detach();
}

/// Due, but not looked at since: it is dropped, not run.
#[run_test]
fn an_action_that_came_due_while_nothing_ran_does_not_run() {
    let log = Log::default();
    let run_log = log.clone();
    let guard = OnDrop(log.clone(), "dropped");
    let local = LocalExecutor::default();
    local.run(async {
        drop(TimerActionOnce::do_in(ms(20), async move {
            run_log.push("ran");
            drop(guard);
        }));
    });
    thread::sleep(ms(30));
    drop(local);
    assert_eq!(log.entries(), ["dropped"]);
}

/// What a waker does when it goes down with the queue: timers are out of reach, not out of order.
#[run_test]
fn wakers_that_go_down_with_the_queue_may_use_its_timers() {
    let local = LocalExecutor::default();
    let timers: Rc<RefCell<Vec<Timer>>> = Rc::default();
    local.run(async {
        for _ in 0..300 {
            let owner = Rc::downgrade(&timers);
            let waker = on_drop(move || {
                let Some(timers) = owner.upgrade() else {
                    return;
                };
                let taken = timers.borrow_mut().pop();
                if let Some(mut timer) = taken {
                    timer.reset(ms(1));
                    drop(timer);
                }
            });
            let mut timer = Timer::new(HOUR);
            assert!(poll(&mut timer, &waker).is_pending());
            timers.borrow_mut().push(timer);
        }
    });
    drop(local);
    assert_eq!(timers.borrow().len(), 0);
}

/// A panic unwinds out of `run` with timers and actions pending; nothing panics a second time, and
/// the executor goes on.
#[run_test]
fn a_panic_leaves_the_other_timers_in_place() {
    let log = Log::default();
    let local = LocalExecutor::default();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        local.run(async {
            for n in 0..300_u64 {
                let log = log.clone();
                drop(TimerActionOnce::do_in(ms(10 + n % 10), async move {
                    log.push(n);
                }));
            }
            drop(TimerActionOnce::do_in(ms(1), async {
                panic!("on purpose")
            }));
            sleep(HOUR).await;
        });
    }));
    assert!(panic.is_err());
    local.run(crate::harness::until(|| log.len() == 300));
    let mut fired = log.entries();
    fired.sort_unstable();
    assert_eq!(fired, (0..300).collect::<Vec<_>>());
}

/// Dropped while its thread unwinds: destructors that use timers do not panic on top, which would
/// abort.
#[test]
fn dropped_by_an_unwinding_thread() {
    struct Report(Log<(ThreadId, usize)>, Sender<usize>);
    impl Drop for Report {
        fn drop(&mut self) {
            self.1.send(self.0.len()).expect("received below");
        }
    }
    let (sender, receiver) = channel();
    let panic = catch_unwind(|| {
        with_watchdog(move || {
            let report = Report(Log::default(), sender);
            // Dropped before the report, being declared after it.
            let local = LocalExecutor::default();
            local.run(async {
                leave_pending(&report.0);
                executor().yield_now().await;
            });
            panic!("on purpose");
        });
    });
    assert!(panic.is_err());
    assert_eq!(receiver.recv(), Ok(4));
}
