//! `destroy`, `cancel`, `join` and `rearm` in each state that an action can be in.
//!
//! ```text
//!            deadline            first poll              end
//!   waiting ──────────▶ due ──────────────────▶ started ─────▶ finished
//!                        (task woken, not run)     │
//!                                                  └─ inside: the action itself calls
//! ```

use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, ms, until};

type Event = &'static str;

/// An action that tells when it starts, when it ends, and when its future is dropped.
fn watchful(log: &Log<Event>, length: Option<Duration>) -> impl Future<Output = u8> + use<> {
    let log = log.clone();
    let guard = OnDrop(log.clone(), "dropped");
    async move {
        let _guard = guard;
        log.push("started");
        if let Some(length) = length {
            sleep(length).await;
        }
        log.push("ended");
        7
    }
}

async fn turns(count: usize) {
    for _ in 0..count {
        executor().yield_now().await;
    }
}

mod waiting {
    use super::*;

    #[run_test]
    async fn destroyed_it_is_dropped_unpolled() {
        // Before the task was ever polled, and while it waits.
        for turns_before in [0, 1] {
            let log = Log::default();
            let action = TimerActionOnce::do_in(HOUR, watchful(&log, None));
            turns(turns_before).await;
            action.destroy();
            action.destroy();
            assert_eq!(log.len(), 0, "the destructor runs in the task's own turn");
            turns(1).await;
            assert_eq!(log.entries(), ["dropped"]);
            assert_eq!(action.join().await, None);
        }
    }

    #[run_test]
    async fn cancel_returns_when_it_is_dropped() {
        let log = Log::default();
        let action = TimerActionOnce::do_in(HOUR, watchful(&log, None));
        turns(1).await;
        action.cancel().await;
        log.push("cancelled");
        assert_eq!(log.entries(), ["dropped", "cancelled"]);
    }

    #[run_test]
    async fn the_destructor_runs_in_its_queue_and_under_its_executor() {
        struct Witness(Rc<Cell<Option<(usize, glommio::TaskQueueHandle)>>>);
        impl Drop for Witness {
            fn drop(&mut self) {
                let here = (executor().id(), executor().current_task_queue());
                self.0.set(Some(here));
            }
        }
        let queue = executor().create_task_queue(
            glommio::Shares::Static(1),
            glommio::Latency::NotImportant,
            "other",
        );
        let dropped_at = Rc::new(Cell::new(None));
        let witness = Witness(Rc::clone(&dropped_at));
        let action = TimerActionOnce::do_in_into(HOUR, async move { drop(witness) }, queue)
            .expect("the queue was just made");
        action.cancel().await;
        assert_eq!(dropped_at.get(), Some((executor().id(), queue)));
    }

    #[run_test]
    async fn rearmed_earlier_it_runs_earlier() {
        for turns_before in [0, 1] {
            let action = TimerActionOnce::do_in(HOUR, async { Instant::now() });
            turns(turns_before).await;
            let when = Instant::now() + ms(2);
            if turns_before == 0 {
                action.rearm_in(ms(2));
            } else {
                action.rearm_at(when);
            }
            assert!(action.join().await.is_some_and(|ran_at| ran_at >= when));
        }
    }

    #[run_test]
    async fn rearmed_later_it_runs_later() {
        let action = TimerActionOnce::do_in(HOUR, async { Instant::now() });
        turns(1).await;
        action.rearm_in(ms(5));
        let earliest = Instant::now() + ms(20);
        action.rearm_at(earliest);
        assert!(action.join().await.is_some_and(|ran_at| ran_at >= earliest));
    }

    #[run_test]
    async fn rearmed_all_the_time_it_runs_once() {
        let log = Log::default();
        let action = TimerActionOnce::do_in(HOUR, watchful(&log, None));
        for n in 0..1000 {
            action.rearm_in(HOUR + ms(n));
            if n % 100 == 0 {
                turns(1).await;
            }
        }
        assert_eq!(log.len(), 0);
        action.rearm_in(ms(1));
        assert_eq!(action.join().await, Some(7));
        assert_eq!(log.entries(), ["started", "ended", "dropped"]);
    }

    #[run_test]
    async fn destroyed_and_rearmed_it_stays_destroyed() {
        let log = Log::default();
        let action = TimerActionOnce::do_in(HOUR, watchful(&log, None));
        turns(1).await;
        action.destroy();
        action.rearm_in(Duration::ZERO);
        turns(3).await;
        action.rearm_in(Duration::ZERO);
        assert_eq!(action.join().await, None);
        assert_eq!(log.entries(), ["dropped"]);
    }
}

mod due {
    use super::*;

    /// Two actions fire in the same pass, and the first one orders the second, whose task is in the
    /// run queue already.
    async fn ordered_by_its_neighbour(
        order: impl Fn(&TimerActionOnce<u8>) + 'static,
    ) -> (Vec<Event>, Option<u8>, Instant) {
        let log = Log::default();
        let second = Rc::new(RefCell::new(None::<TimerActionOnce<u8>>));
        let ordered = Rc::clone(&second);
        let first = TimerActionOnce::do_in(HOUR, async move {
            let ordered_at = Instant::now();
            order(ordered.borrow().as_ref().expect("made below"));
            ordered_at
        });
        let action = TimerActionOnce::do_in(HOUR, watchful(&log, None));
        turns(1).await;
        first.rearm_in(Duration::ZERO);
        action.rearm_in(Duration::ZERO);
        *second.borrow_mut() = Some(action);
        let ordered_at = first.join().await.expect("it is not cancelled");
        let second = second.borrow_mut().take().expect("set above");
        let output = second.join().await;
        (log.entries(), output, ordered_at)
    }

    #[run_test]
    async fn rearmed_it_is_postponed() {
        let (log, output, ordered_at) =
            ordered_by_its_neighbour(|action| action.rearm_in(ms(20))).await;
        assert_eq!(output, Some(7));
        assert_eq!(log, ["started", "ended", "dropped"]);
        assert!(ordered_at.elapsed() >= ms(20));
    }

    #[run_test]
    async fn rearmed_to_the_past_it_runs() {
        let rearm = |action: &TimerActionOnce<u8>| action.rearm_at(Instant::now() - ms(1));
        let (_, output, _) = ordered_by_its_neighbour(rearm).await;
        assert_eq!(output, Some(7));
    }

    #[run_test]
    async fn rearmed_and_destroyed_it_never_starts() {
        let both = |action: &TimerActionOnce<u8>| {
            action.rearm_in(Duration::ZERO);
            action.destroy();
            action.rearm_in(Duration::ZERO);
        };
        let (log, output, _) = ordered_by_its_neighbour(both).await;
        assert_eq!(output, None);
        assert_eq!(log, ["dropped"]);
    }
}

mod started {
    use super::*;

    /// An action that is suspended in the middle.
    async fn suspended(log: &Log<Event>, length: Duration) -> TimerActionOnce<u8> {
        let action = TimerActionOnce::do_in(Duration::ZERO, watchful(log, Some(length)));
        until(|| log.len() > 0).await;
        action
    }

    #[run_test]
    async fn destroyed_it_is_dropped_where_it_is() {
        let log = Log::default();
        let action = suspended(&log, HOUR).await;
        action.destroy();
        assert_eq!(log.entries(), ["started"]);
        turns(1).await;
        assert_eq!(log.entries(), ["started", "dropped"]);
        assert_eq!(action.join().await, None);
    }

    #[run_test]
    async fn cancelled_it_is_dropped_when_cancel_returns() {
        let log = Log::default();
        suspended(&log, HOUR).await.cancel().await;
        assert_eq!(log.entries(), ["started", "dropped"]);
    }

    #[run_test]
    async fn rearm_does_not_touch_it() {
        let log = Log::default();
        let action = suspended(&log, ms(5)).await;
        action.rearm_in(HOUR);
        action.rearm_in(Duration::ZERO);
        action.rearm_at(Instant::now());
        assert_eq!(action.join().await, Some(7));
        assert_eq!(log.entries(), ["started", "ended", "dropped"]);
    }
}

mod inside {
    use super::*;

    /// What an action does to itself, how it goes on, and its output.
    async fn does_to_itself(
        order: impl Fn(&TimerActionOnce<u8>) + 'static,
        suspends: bool,
    ) -> (Vec<Event>, Option<u8>) {
        let log = Log::default();
        let itself = Rc::new(RefCell::new(None::<TimerActionOnce<u8>>));
        let ordered = Rc::clone(&itself);
        let guard = OnDrop(log.clone(), "dropped");
        let events = log.clone();
        let action = TimerActionOnce::do_in(Duration::ZERO, async move {
            let _guard = guard;
            order(ordered.borrow().as_ref().expect("set below"));
            events.push("goes on");
            if suspends {
                sleep(ms(1)).await;
                events.push("resumed");
            }
            7
        });
        *itself.borrow_mut() = Some(action);
        until(|| log.entries().last() == Some(&"dropped")).await;
        let action = itself.borrow_mut().take().expect("set above");
        let output = action.join().await;
        (log.entries(), output)
    }

    #[run_test]
    async fn destroyed_it_runs_to_its_next_suspension() {
        let (log, output) = does_to_itself(TimerActionOnce::destroy, true).await;
        assert_eq!(log, ["goes on", "dropped"]);
        assert_eq!(output, None);
    }

    #[run_test]
    async fn destroyed_it_runs_to_its_end_and_its_value_is_dropped() {
        let (log, output) = does_to_itself(TimerActionOnce::destroy, false).await;
        assert_eq!(log, ["goes on", "dropped"]);
        assert_eq!(output, None);
    }

    #[run_test]
    async fn rearmed_it_runs_once_all_the_same() {
        for suspends in [false, true] {
            let rearm = |action: &TimerActionOnce<u8>| {
                action.rearm_in(Duration::ZERO);
                action.rearm_in(HOUR);
                action.rearm_at(Instant::now());
            };
            let (log, output) = does_to_itself(rearm, suspends).await;
            assert_eq!(log.iter().filter(|it| **it == "goes on").count(), 1);
            assert_eq!(output, Some(7));
        }
    }
}

mod finished {
    use super::*;

    #[run_test]
    async fn orders_come_too_late_and_the_value_is_there() {
        let log = Log::default();
        let action = TimerActionOnce::do_in(Duration::ZERO, watchful(&log, None));
        until(|| log.len() == 3).await;
        action.rearm_in(Duration::ZERO);
        action.rearm_in(HOUR);
        action.rearm_at(Instant::now());
        action.destroy();
        turns(2).await;
        action.destroy();
        assert_eq!(action.join().await, Some(7));
        assert_eq!(log.entries(), ["started", "ended", "dropped"]);
    }

    #[run_test]
    async fn cancel_drops_the_value() {
        let log = Log::default();
        let value = OnDrop(log.clone(), "value");
        let end = log.clone();
        let action = TimerActionOnce::do_in(Duration::ZERO, async move {
            end.push("ended");
            value
        });
        until(|| log.len() == 1).await;
        turns(1).await;
        assert_eq!(log.entries(), ["ended"]);
        action.cancel().await;
        assert_eq!(log.entries(), ["ended", "value"]);
    }
}

mod panicked {
    use super::*;

    #[run_test]
    fn orders_come_too_late_and_there_is_no_value() {
        let local = LocalExecutor::default();
        let kept = RefCell::new(None);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            local.run(async {
                let action: TimerActionOnce<u8> =
                    TimerActionOnce::do_in(ms(1), async { panic!("on purpose") });
                *kept.borrow_mut() = Some(action);
                sleep(HOUR).await;
            });
        }));
        assert!(panic.is_err());
        local.run(async {
            let action = kept.take().expect("set above");
            action.destroy();
            action.rearm_in(Duration::ZERO);
            action.rearm_in(HOUR);
            action.destroy();
            assert_eq!(action.join().await, None);
        });
    }
}
