use glommio::sync::Gate;

use crate::common::prelude::*;

fn is_closed<T>(result: Result<T, GlommioError<()>>) -> bool {
    matches!(result, Err(GlommioError::Closed(ResourceType::Gate)))
}

#[test]
fn closing_waits_for_the_last_pass() {
    let gate = Gate::new();
    let passes = [gate.enter().unwrap(), gate.clone().enter().unwrap()];
    let mut closing = Polled::waiting(gate.close());
    assert!(!gate.is_open() && !gate.is_closed());
    assert!(is_closed(gate.enter()));
    let [first, second] = passes;
    drop(first);
    assert!(!closing.is_woken());
    drop(second);
    assert!(gate.is_closed());
    closing.finish().unwrap();
}

#[test]
fn closing_acts_at_the_call() {
    let gate = Gate::new();
    let pass = gate.enter().unwrap();
    drop(gate.close());
    assert!(!gate.is_open() && is_closed(gate.enter()));
    drop(pass);
    assert!(gate.is_closed());
}

#[test]
fn a_gate_without_visitors_is_closed_at_once() {
    let gate = Gate::new();
    let closing = gate.close();
    assert!(gate.is_closed());
    at_once(closing).unwrap();
    assert!(is_closed(at_once(gate.close())), "it was closed before");
}

#[test]
fn any_number_of_closes_wait_at_a_time() {
    let gate = Gate::new();
    let pass = gate.enter().unwrap();
    let mut first = Polled::waiting(gate.close());
    let told = Rc::new(Cell::new(false));
    let tell = Rc::clone(&told);
    let mut dropped = Polled::hooked(gate.close(), move || tell.set(true));
    assert!(dropped.poll().is_pending());
    let unpolled = gate.close();
    let mut last = Polled::waiting(gate.close());
    drop(dropped);
    drop(pass);
    assert!(!told.get(), "it was given up");
    last.finish().unwrap();
    first.finish().unwrap();
    at_once(unpolled).expect("it was asked for before the end");
    assert!(is_closed(at_once(gate.close())));
}

#[test]
fn a_close_outlives_the_handle_that_it_was_called_on() {
    let gate = Gate::new();
    let closing = gate.close();
    drop(gate);
    at_once(closing).unwrap();
}

#[run_test]
async fn tasks_are_inside_until_they_are_done() {
    let gate = Gate::new();
    let queue = queue("q");
    let done = Rc::new(Cell::new(0));
    let work = |wait: u64| {
        let done = Rc::clone(&done);
        async move {
            sleep(Duration::from_millis(wait)).await;
            done.set(done.get() + 1);
        }
    };
    gate.spawn(work(3)).unwrap().detach();
    gate.spawn_into(work(2), queue).unwrap().detach();
    gate.close().await.unwrap();
    assert_eq!(done.get(), 2);
    assert!(is_closed(gate.spawn(async {})));
    assert!(is_closed(gate.spawn_into(async {}, queue)));
}

/// As in 0.9.0: the task is queued, and runs when the one that has spawned it awaits.
#[run_test]
async fn a_task_may_be_spawned_through_a_gate_while_a_borrow_is_held_that_it_takes() {
    let gate = Gate::new();
    let queue = queue("q");
    let order = Rc::new(RefCell::new(Vec::new()));
    let in_queue = spawn_local_into(
        {
            let (gate, order) = (gate.clone(), Rc::clone(&order));
            async move {
                let note = Rc::clone(&order);
                let task = {
                    let mut borrowed = order.borrow_mut();
                    let task = gate.spawn(async move {
                        note.borrow_mut().push("the task");
                        executor().current_task_queue()
                    });
                    borrowed.push("the spawner");
                    task
                };
                task.unwrap().await
            }
        },
        queue,
    );
    assert_eq!(in_queue.unwrap().await, queue, "that of the spawner");
    assert_eq!(*order.borrow(), ["the spawner", "the task"]);
    at_once(gate.close()).unwrap();
}

#[run_test]
async fn the_pass_of_a_task_is_released_before_its_result_is_seen() {
    let gate = Gate::new();
    let task = gate.spawn(async { 7 }).unwrap();
    let closing = gate.close();
    assert_eq!(task.await, 7);
    assert!(gate.is_closed());
    closing.await.unwrap();
}

#[run_test]
async fn the_pass_of_a_task_is_released_after_its_future_is_dropped() {
    let queue = queue("q");
    for starts in [true, false] {
        let gate = Gate::new();
        let seen = Rc::new(Cell::new(None));
        let guard = on_drop({
            let (gate, seen) = (gate.clone(), Rc::clone(&seen));
            move || seen.set(Some(gate.is_closed()))
        });
        let future = async move {
            let _guard = guard;
            std::future::pending::<()>().await;
        };
        let task = gate.spawn_into(future, queue).unwrap();
        let closing = gate.close();
        if starts {
            executor().yield_task_queue_now().await;
            sleep(Duration::from_millis(1)).await;
        }
        task.cancel().await;
        assert_eq!(seen.get(), Some(false), "inside while it is being dropped");
        closing.await.unwrap();
    }
}

#[run_test]
async fn an_unknown_queue_leaves_nothing_inside() {
    let gate = Gate::new();
    let queue = queue("q");
    executor().remove_task_queue(queue).unwrap();
    let refused = gate.spawn_into(async {}, queue).map(drop);
    assert!(matches!(
        refused,
        Err(GlommioError::ExecutorError(ExecutorErrorKind::QueueError {
            kind: QueueErrorKind::NotFound,
            ..
        }))
    ));
    at_once(gate.close()).unwrap();
}

#[test]
fn without_an_executor_nothing_is_left_inside() {
    let gate = Gate::new();
    let message = panic_of(|| gate.spawn(async {}));
    assert!(message.contains("no LocalExecutor"), "{message}");
    at_once(gate.close()).unwrap();
}

#[test]
fn the_end_of_an_executor_lets_all_tasks_leave() {
    let (gate, parking) = (Gate::new(), Parking::default());
    let mut closing = run(async {
        gate.spawn(parking.clone()).unwrap().detach();
        Polled::waiting(gate.close())
    });
    assert!(gate.is_closed());
    closing.finish().unwrap();
}

#[test]
fn wakers_may_use_the_gate_and_panic() {
    let gate = Gate::new();
    let pass = gate.enter().unwrap();
    let hooked = |hook: fn(&Gate)| {
        let outer = gate.clone();
        let mut closing = Polled::hooked(gate.close(), move || hook(&outer));
        assert!(closing.poll().is_pending());
        closing
    };
    let mut closings = [
        hooked(|_| quiet_panic()),
        hooked(|gate| assert!(is_closed(at_once(gate.close())))),
        hooked(|gate| assert!(gate.is_closed())),
    ];
    drop(pass);
    for closing in &mut closings {
        closing.finish().unwrap();
    }
}
