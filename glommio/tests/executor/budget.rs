//! The cooperative budget itself; that each operation takes part is tested in `glommio/tests/budget`.

use glommio::{consume_budget, unconstrained};

use crate::common::prelude::*;

/// Returns when the slice of the running task is over.
fn compute_until_preempted() {
    spin_until_preempted();
}

#[test]
fn a_task_goes_on_while_its_slice_lasts() {
    LocalExecutor::default().run(async {
        let refused_early = poll_fn(|cx| {
            let was_refused = (0..1000).any(|_| pin!(consume_budget()).poll(cx).is_pending());
            Poll::Ready(was_refused && !executor().need_preempt())
        });
        assert!(
            !refused_early.await,
            "refused though nothing else wanted to run"
        );
    });
}

#[run_test]
async fn once_refused_every_operation_of_the_poll_is() {
    compute_until_preempted();
    poll_fn(|cx| {
        let leave = |cx: &mut _| pin!(consume_budget()).poll(cx).is_ready();
        let granted = (0..100).filter(|_| leave(cx)).count();
        assert_eq!(granted, 32);
        Poll::Ready(())
    })
    .await;
    executor().yield_now().await;
    poll_fn(|cx| {
        let first = pin!(consume_budget()).poll(cx);
        assert!(first.is_ready(), "a new poll has a full budget");
        Poll::Ready(())
    })
    .await;
}

#[run_test]
async fn a_task_spawned_in_a_refused_poll_has_a_budget_of_its_own() {
    compute_until_preempted();
    poll_fn(|cx| {
        while pin!(consume_budget()).poll(cx).is_ready() {}
        Poll::Ready(())
    })
    .await;
    let has_run = Rc::new(Cell::new(false));
    let child = spawn_local({
        let has_run = has_run.clone();
        async move {
            consume_budget().await;
            has_run.set(true);
        }
    });
    assert!(has_run.get());
    poll_fn(|cx| {
        assert!(
            pin!(consume_budget()).poll(cx).is_pending(),
            "the outer poll goes on refused"
        );
        Poll::Ready(())
    })
    .await;
    child.await;
}

#[run_test]
async fn unconstrained_is_never_refused_and_ends_with_its_poll() {
    compute_until_preempted();
    unconstrained(poll_fn(|cx| {
        assert!((0..1000).all(|_| pin!(consume_budget()).poll(cx).is_ready()));
        Poll::Ready(())
    }))
    .await;
    poll_fn(|cx| {
        let granted = (0..100)
            .filter(|_| pin!(consume_budget()).poll(cx).is_ready())
            .count();
        assert_eq!(granted, 32);
        Poll::Ready(())
    })
    .await;
}

#[run_test]
fn a_block_on_in_a_task_does_not_spin_for_ever() {
    run(async {
        compute_until_preempted();
        block_on(async {
            for _ in 0..1000 {
                consume_budget().await;
            }
        });
    });
}

#[test]
fn outside_an_executor_nothing_is_refused() {
    run(async {
        compute_until_preempted();
        poll_fn(|cx| {
            while pin!(consume_budget()).poll(cx).is_ready() {}
            Poll::Ready(())
        })
        .await;
    });
    let unrefused = async {
        for _ in 0..1000 {
            consume_budget().await;
        }
    };
    assert!(block_on(poll_once(unrefused)).is_some());
}
