//! Actions that run once: when, where, and what becomes of their handles.

use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, hog, ms, until};

/// The deadline is that of the call, not that of the first time the task gets to run.
#[run_test]
async fn a_busy_queue_does_not_push_it_back() {
    let ran = Rc::new(Cell::new(false));
    let did = Rc::clone(&ran);
    let _action = TimerActionOnce::do_in(ms(20), async move { did.set(true) });
    hog(ms(25));
    // Turns of a queue with nothing to do: far less than the 20 ms that would else be left.
    for _ in 0..4 {
        executor().yield_now().await;
    }
    assert!(ran.get());
}

#[run_test]
async fn the_queue_is_that_of_the_caller() {
    let queue = executor().create_task_queue(Shares::Static(10), Latency::NotImportant, "other");
    let queues = glommio::spawn_local_into(
        async {
            let in_hours = TimerActionOnce::do_in(ms(1), async { executor().current_task_queue() });
            let at =
                TimerActionOnce::do_at(Instant::now(), async { executor().current_task_queue() });
            [in_hours.join().await, at.join().await]
        },
        queue,
    )
    .expect("the queue was just made")
    .await;
    assert_eq!(queues, [Some(queue); 2]);
}

#[run_test]
async fn the_queue_is_the_one_that_is_named() {
    let queue =
        executor().create_task_queue(Shares::Static(1000), Latency::Matters(ms(2)), "named");
    let action = async { executor().current_task_queue() };
    let ran_in = TimerActionOnce::do_in_into(ms(1), action, queue).expect("it exists");
    assert_eq!(ran_in.join().await, Some(queue));
    let action = async { executor().current_task_queue() };
    let ran_in = TimerActionOnce::do_at_into(Instant::now(), action, queue).expect("it exists");
    assert_eq!(ran_in.join().await, Some(queue));
    // The handles are gone and so are the tasks: the queue can be removed.
    executor().remove_task_queue(queue).expect("it is empty");
}

/// A queue that was removed.
fn unknown_queue() -> TaskQueueHandle {
    let queue = executor().create_task_queue(Shares::Static(1), Latency::NotImportant, "gone");
    executor().remove_task_queue(queue).expect("it is empty");
    queue
}

#[run_test]
async fn an_unknown_queue_is_an_error_and_drops_the_action() {
    let gone = unknown_queue();
    let log = Log::default();
    let guards = [OnDrop(log.clone(), 1), OnDrop(log.clone(), 2)];
    let [first, second] = guards;
    let errors = [
        TimerActionOnce::do_in_into(ms(1), async move { drop(first) }, gone).err(),
        TimerActionOnce::do_at_into(Instant::now(), async move { drop(second) }, gone).err(),
    ];
    assert_eq!(log.entries(), [1, 2]);
    for error in errors {
        let error = error.expect("there is no such queue");
        assert!(
            matches!(
                error,
                GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
                    index: 1,
                    kind: QueueErrorKind::NotFound,
                })
            ),
            "{error:?}"
        );
    }
}

/// The output is not taken: it is dropped on the executor.
#[run_test]
async fn without_its_handle_the_output_is_dropped_on_the_executor() {
    struct Output(Log<usize>);
    impl Drop for Output {
        fn drop(&mut self) {
            self.0.push(executor().id());
        }
    }
    let log = Log::default();
    let output = Output(log.clone());
    drop(TimerActionOnce::do_in(ms(1), async move { output }));
    until(|| log.len() > 0).await;
    let output = Output(log.clone());
    let kept = TimerActionOnce::do_in(ms(1), async move { output });
    sleep(ms(3)).await;
    drop(kept);
    until(|| log.len() == 2).await;
    assert_eq!(log.entries(), [executor().id(); 2]);
}

#[run_test]
async fn giving_up_the_wait_for_it_does_not_stop_it() {
    let log = Log::default();
    let ran = log.clone();
    let action = TimerActionOnce::do_in(ms(3), async move { ran.push("ran") });
    {
        let mut joining = Box::pin(action.join());
        let _ = poll_once(&mut joining).await;
    }
    until(|| log.len() == 1).await;
}

/// `cancel` has begun when it was polled once.
#[run_test]
async fn giving_up_a_cancellation_does_not_revive_it() {
    let log = Log::default();
    let guard = OnDrop(log.clone(), "dropped");
    let action = TimerActionOnce::do_in(HOUR, async move { drop(guard) });
    {
        let mut cancelling = Box::pin(action.cancel());
        assert!(poll_once(&mut cancelling).await.is_none());
    }
    until(|| log.len() == 1).await;
    assert_eq!(log.entries(), ["dropped"]);
}

/// A cancellation that is not polled has no effect.
#[run_test]
async fn an_unpolled_cancellation_leaves_it_alone() {
    let log = Log::default();
    let ran = log.clone();
    let action = TimerActionOnce::do_in(ms(1), async move { ran.push("ran") });
    drop(action.cancel());
    until(|| log.len() == 1).await;
}

#[run_test]
async fn what_it_spawned_survives_it() {
    let log = Log::default();
    let (child_log, started) = (log.clone(), Rc::new(Cell::new(false)));
    let start = Rc::clone(&started);
    let action = TimerActionOnce::do_in(ms(1), async move {
        spawn_local(async move {
            sleep(ms(5)).await;
            child_log.push("child");
        })
        .detach();
        start.set(true);
        sleep(HOUR).await;
    });
    until(|| started.get()).await;
    action.destroy();
    assert_eq!(action.join().await, None);
    until(|| log.len() == 1).await;
}

#[run_test]
async fn debug_shows_the_output_s_type_only_if_it_can() {
    let action = TimerActionOnce::do_in(HOUR, async { 1 });
    assert!(format!("{action:?}").starts_with("TimerActionOnce"));
    action.cancel().await;
}
