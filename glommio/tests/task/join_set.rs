//! `JoinSet`: outputs in the order in which tasks are done, cancelling, and what becomes of panics.

use glommio::task::{AbortHandle, JoinError, JoinSet};
use proptest::prelude::*;

use crate::common::loud_clone::{ON_CLONE, waker_with_a_loud_clone};
use crate::common::prelude::*;

fn cancelled<T>(output: Option<Result<T, JoinError>>) -> bool {
    matches!(output, Some(Err(error)) if error.is_cancelled() && !error.is_panic())
}

#[run_test]
async fn outputs_come_in_the_order_in_which_the_tasks_are_done() {
    let mut set = JoinSet::new();
    let gates: Vec<_> = (0..50).map(|_| Parking::default()).collect();
    for (n, gate) in gates.iter().enumerate() {
        let gate = gate.clone();
        set.spawn(async move {
            gate.await;
            n
        });
    }
    assert_eq!(set.len(), 50);
    assert!(set.try_join_next().is_none());
    let order: Vec<_> = (0..50).map(|n| n * 7 % 50).collect();
    for &n in &order {
        gates[n].open();
        yield_now().await;
    }
    let mut came = Vec::new();
    while let Some(output) = set.join_next().await {
        came.push(output.expect("none was cancelled"));
    }
    assert_eq!(came, order);
    assert!(set.is_empty() && set.try_join_next().is_none());
}

/// Cloning a waker is code of others: here it runs the executor, in which a task ends meanwhile.
#[run_test]
fn a_task_that_ends_while_the_waker_is_cloned_is_not_missed() {
    let local = Rc::new(LocalExecutor::default());
    let mut set = local.run(async {
        let mut set = JoinSet::new();
        set.spawn(sleep(Duration::from_millis(1)));
        set
    });
    ON_CLONE.set(Some(Box::new(move || {
        local.run(sleep(Duration::from_millis(3)));
    })));
    let waker = waker_with_a_loud_clone();
    let came = set.poll_join_next(&mut Context::from_waker(&waker));
    ON_CLONE.set(None);
    assert_eq!(
        came,
        Poll::Ready(Some(Ok(()))),
        "no waker will be woken for it"
    );
}

#[run_test]
async fn a_task_that_is_done_when_it_is_spawned() {
    let mut set = JoinSet::default();
    let handle = set.spawn(async { "at once" });
    assert!(handle.is_finished());
    assert_eq!(set.len(), 1);
    assert_eq!(set.join_next().await, Some(Ok("at once")));
    assert_eq!(set.join_next().await, None);
    // And one that is queued first.
    let queue = executor().current_task_queue();
    let handle = set
        .spawn_into(async { "queued" }, queue)
        .expect("it exists");
    assert!(!handle.is_finished());
    assert_eq!(set.join_next().await, Some(Ok("queued")));
}

#[run_test]
async fn an_unknown_queue_is_an_error_and_no_member() {
    let mut set = JoinSet::new();
    let queue = queue("gone");
    executor().remove_task_queue(queue).expect("it is empty");
    let drops = DropCount::default();
    let guard = drops.guard();
    let refused = set.spawn_into(async move { drop(guard) }, queue);
    assert!(matches!(
        refused,
        Err(GlommioError::ExecutorError(
            ExecutorErrorKind::QueueError { .. }
        ))
    ));
    assert_eq!((set.len(), drops.count()), (0, 1));
    let own: TaskQueueHandle = executor().current_task_queue();
    assert!(set.spawn_into(async {}, own).is_ok());
}

#[run_test]
async fn the_future_is_gone_before_its_output_is_seen() {
    let drops = DropCount::default();
    let mut set = JoinSet::new();
    let guard = drops.guard();
    set.spawn(poll_fn(move |_| {
        let _guard = &guard;
        Poll::Ready(())
    }));
    assert_eq!(drops.count(), 1);
    // Nor is a task that is cancelled reported before it is gone; polled once, or never.
    let guard = drops.guard();
    set.spawn(async move {
        let _guard = guard;
        pending().await
    });
    let guard = drops.guard();
    let queue = executor().current_task_queue();
    let captured = async move { drop(guard) };
    let never_polled = set.spawn_into(captured, queue).expect("it exists");
    never_polled.abort();
    set.abort_all();
    assert_eq!(set.join_next().await, Some(Ok(())));
    let mut seen = 0;
    while let Some(output) = set.join_next().await {
        assert!(cancelled(Some(output)));
        seen += 1;
        assert!(drops.count() > seen);
    }
    assert_eq!((seen, drops.count()), (2, 3));
}

#[run_test]
async fn one_or_all_are_aborted() {
    let mut set = JoinSet::new();
    let handles: Vec<AbortHandle> = (0..10).map(|_| set.spawn(pending::<()>())).collect();
    handles[3].abort();
    handles[3].abort();
    assert!(cancelled(set.join_next().await));
    assert!(handles[3].is_finished() && !handles[4].is_finished());
    // Its place may be taken by now; the handle does not reach the newcomer.
    let newcomer = set.spawn(pending());
    handles[3].abort();
    yield_now().await;
    assert!(!newcomer.is_finished() && set.try_join_next().is_none());
    set.abort_all();
    assert_eq!(set.len(), 10);
    for _ in 0..10 {
        assert!(cancelled(set.join_next().await));
    }
    assert!(set.join_next().await.is_none());
    assert!(newcomer.is_finished());
    // It can be used again.
    set.spawn(async {});
    assert_eq!(set.join_next().await, Some(Ok(())));
}

#[run_test]
async fn a_task_that_aborts_itself_finishes_its_poll() {
    let mut set = JoinSet::new();
    let own = Rc::new(RefCell::new(None::<AbortHandle>));
    let handle = set.spawn({
        let own = Rc::clone(&own);
        async move {
            yield_now().await;
            own.borrow().as_ref().expect("it was set").abort();
            pending::<()>().await;
        }
    });
    own.replace(Some(handle));
    assert!(cancelled(set.join_next().await));
}

#[run_test]
async fn dropping_the_set_cancels_and_detaching_does_not() {
    let (drops, ran) = (DropCount::default(), Rc::new(Cell::new(0)));
    let fill = |set: &mut JoinSet<_>| {
        for _ in 0..10 {
            let (guard, ran) = (drops.guard(), Rc::clone(&ran));
            set.spawn(async move {
                yield_now().await;
                ran.set(ran.get() + 1);
                guard
            });
        }
    };
    let mut set = JoinSet::new();
    fill(&mut set);
    drop(set);
    assert_eq!(drops.count(), 0, "not inside the call");
    while drops.count() < 10 {
        yield_now().await;
    }
    assert_eq!(ran.get(), 0);
    let mut set = JoinSet::new();
    fill(&mut set);
    set.detach_all();
    assert!(set.is_empty());
    while drops.count() < 20 {
        yield_now().await;
    }
    assert_eq!(ran.get(), 10);
    // Outputs that were not taken go with the set.
    fill(&mut set);
    while ran.get() < 20 {
        yield_now().await;
    }
    assert_eq!(drops.count(), 20);
    drop(set);
    assert_eq!(drops.count(), 30);
}

#[run_test]
async fn a_shutdown_ends_all() {
    let drops = DropCount::default();
    let mut set = JoinSet::new();
    for _ in 0..20 {
        let guard = drops.guard();
        set.spawn(async move {
            let _guard = guard;
            pending::<()>().await;
        });
    }
    set.shutdown().await;
    assert_eq!((drops.count(), set.len()), (20, 0));
}

#[run_test]
async fn only_the_last_that_polled_is_woken_and_once() {
    let mut set = JoinSet::new();
    let gate = Parking::default();
    for _ in 0..3 {
        set.spawn(gate.clone());
    }
    let ((first, by_first), (second, by_second)) = (counting(), counting());
    assert!(
        set.poll_join_next(&mut Context::from_waker(&first))
            .is_pending()
    );
    assert!(
        set.poll_join_next(&mut Context::from_waker(&second))
            .is_pending()
    );
    gate.open();
    while set.try_join_next().is_none() {
        yield_now().await;
    }
    assert_eq!((by_first.get(), by_second.get()), (0, 1));
}

/// A waker that takes the output inside the wake.
#[run_test]
async fn a_waker_may_use_the_set() {
    let set = Rc::new(RefCell::new(JoinSet::new()));
    let gate = Parking::default();
    let open = gate.clone();
    set.borrow_mut().spawn(async move {
        open.await;
        7
    });
    let taken = Rc::new(Cell::new(None));
    let waker = on_wake({
        let (set, taken) = (Rc::downgrade(&set), Rc::clone(&taken));
        move || {
            if let Some(set) = set.upgrade() {
                taken.set(set.borrow_mut().try_join_next());
                set.borrow_mut().spawn(async { 8 });
            }
        }
    });
    let polled = set
        .borrow_mut()
        .poll_join_next(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    gate.open();
    yield_now().await;
    assert_eq!(taken.take(), Some(Ok(7)));
    assert_eq!(set.borrow_mut().try_join_next(), Some(Ok(8)));
}

#[run_test]
fn a_panic_goes_through_run_and_is_told() {
    let local = LocalExecutor::default();
    let set = Rc::new(RefCell::new(JoinSet::<u8>::new()));
    let message = panic_of(|| {
        local.run(async {
            set.borrow_mut().spawn(async {
                yield_now().await;
                panic!("later")
            });
            pending::<()>().await;
        });
    });
    assert_eq!(message, "later");
    let error = set.borrow_mut().try_join_next();
    let error = error.expect("it is done").expect_err("it has panicked");
    assert!(error.is_panic() && !error.is_cancelled());
    assert_eq!(error.to_string(), "the task has panicked");
    // In the first poll, which is inside of the call.
    local.run(async {
        let message = panic_of(|| set.borrow_mut().spawn(async { panic!("at once") }));
        assert_eq!(message, "at once");
    });
    let error = set.borrow_mut().try_join_next().expect("it is done");
    assert!(error.is_err_and(|it| it.is_panic()));
    assert!(set.borrow().is_empty());
    // Out of the destructor of a future that was ready.
    let message = panic_of(|| {
        local.run(async {
            let bomb = on_drop(|| panic!("destructor"));
            set.borrow_mut().spawn(poll_fn(move |_| {
                let _bomb = &bomb;
                Poll::Ready(1)
            }));
        });
    });
    assert_eq!(message, "destructor");
    let error = set.borrow_mut().try_join_next().expect("it is done");
    assert!(error.is_err_and(|it| it.is_panic()));
}

#[run_test]
fn the_executor_ends_before_the_set() {
    let local = LocalExecutor::default();
    let mut set = local.run(async {
        let mut set = JoinSet::new();
        set.spawn(async { 1 });
        set.spawn(pending());
        set
    });
    let handle = local.run(async { set.spawn(pending()) });
    drop(local);
    assert!(handle.is_finished());
    handle.abort();
    set.abort_all();
    assert_eq!(block_on(set.join_next()), Some(Ok(1)));
    assert!(cancelled(block_on(set.join_next())));
    assert!(cancelled(block_on(set.join_next())));
    assert_eq!(block_on(set.join_next()), None);
    assert!(panic_of(|| set.spawn(async { 2 })).contains("no LocalExecutor"));
    assert!(set.is_empty());
    drop(set);
    assert!(handle.is_finished());
}

#[run_test]
async fn outputs_whose_destructors_panic() {
    let drops = Rc::new(Cell::new(0));
    let mut set = JoinSet::new();
    for n in 0..10 {
        let drops = Rc::clone(&drops);
        set.spawn(async move {
            on_drop(move || {
                drops.set(drops.get() + 1);
                assert!(n % 2 == 0, "number {n}");
            })
        });
    }
    assert_eq!(panic_of(|| drop(set)), "number 1");
    assert_eq!(drops.get(), 10);
}

#[derive(Clone, Debug)]
enum Step {
    Spawn,
    Finish(usize),
    Abort(usize),
    AbortAll,
    Yield,
    Join,
    TryJoin,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Spawn),
        6 => any::<usize>().prop_map(Step::Finish),
        3 => any::<usize>().prop_map(Step::Abort),
        1 => Just(Step::AbortAll),
        6 => Just(Step::Yield),
        4 => Just(Step::Join),
        2 => Just(Step::TryJoin),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each task is told of once: with its output if it was let finish and not aborted before, else as cancelled.
    #[test]
    fn each_task_is_told_of_once(steps in prop::collection::vec(step(), 0..200)) {
        run(async move {
            let mut set = JoinSet::new();
            let done = Rc::new(RefCell::new(Vec::new()));
            let mut tasks = Vec::new();
            let mut came = Vec::new();
            let mut aborted = Vec::new();
            for step in steps {
                match step {
                    Step::Spawn => {
                        let (n, gate, done) = (tasks.len(), Parking::default(), Rc::clone(&done));
                        let open = gate.clone();
                        let handle = set.spawn(async move {
                            open.await;
                            done.borrow_mut().push(n);
                            n
                        });
                        tasks.push((handle, gate));
                    }
                    Step::Finish(n) if !tasks.is_empty() => tasks[n % tasks.len()].1.open(),
                    Step::Abort(n) if !tasks.is_empty() => {
                        let n = n % tasks.len();
                        tasks[n].0.abort();
                        aborted.push(n);
                    }
                    Step::AbortAll => {
                        set.abort_all();
                        aborted.extend(0..tasks.len());
                    }
                    Step::Yield => yield_now().await,
                    Step::Join => came.extend(poll_once(set.join_next()).await.flatten()),
                    Step::TryJoin => came.extend(set.try_join_next()),
                    Step::Finish(_) | Step::Abort(_) => {}
                }
            }
            tasks.iter().for_each(|(_, gate)| gate.open());
            while let Some(output) = set.join_next().await {
                came.push(output);
            }
            assert_eq!(came.len(), tasks.len());
            let outputs: Vec<_> = came.iter().filter_map(|it| it.as_ref().ok().copied()).collect();
            assert_eq!(outputs, *done.borrow(), "in the order in which they were done");
            let lost = came.iter().filter(|it| it.is_err()).count();
            assert_eq!(lost + outputs.len(), tasks.len());
            assert!((0..tasks.len()).all(|n| outputs.contains(&n) || aborted.contains(&n)));
            assert!(tasks.iter().all(|(handle, _)| handle.is_finished()));
        });
    }
}
