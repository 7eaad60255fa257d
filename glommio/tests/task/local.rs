//! `task_local!`: where a value is visible, and where it is not.

use glommio::task::AccessError;
use glommio::task_local;

use crate::common::prelude::*;

task_local! {
    static NUMBER: u32;
    /// Two in one declaration, of which one has attributes and is public.
    pub static TEXT: String;
}

task_local!(static GUARD: crate::common::Dropped);

fn number() -> Option<u32> {
    NUMBER.try_with(|it| *it).ok()
}

#[run_test]
async fn a_value_is_visible_while_its_future_runs() {
    assert_eq!(NUMBER.try_with(|_| ()), Err(AccessError));
    let scoped = NUMBER.scope(7, async {
        assert_eq!(number(), Some(7));
        yield_now().await;
        assert!(TEXT.try_with(|_| ()).is_err());
        TEXT.scope("both".into(), async {
            (number(), TEXT.with(String::clone))
        })
        .await
    });
    assert_eq!(scoped.await, (Some(7), "both".into()));
    assert_eq!(number(), None);
}

#[test]
fn it_needs_no_executor() {
    assert_eq!(block_on(NUMBER.scope(3, async { number() })), Some(3));
    assert_eq!(number(), None);
}

#[run_test]
async fn tasks_that_take_turns_see_their_own() {
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            spawn_local(NUMBER.scope(n, async move {
                for _ in 0..10 {
                    assert_eq!(number(), Some(n));
                    yield_now().await;
                }
            }))
        })
        .collect();
    for task in tasks {
        assert_eq!(number(), None);
        task.await;
    }
}

#[run_test]
async fn scopes_nest() {
    let outer = NUMBER.scope(1, async {
        let mut inner = pin!(NUMBER.scope(2, async {
            assert_eq!(number(), Some(2));
            yield_now().await;
            number()
        }));
        assert!(poll_once(&mut inner).await.is_none());
        assert_eq!(number(), Some(1), "between two polls of the inner one");
        let seen = inner.await;
        (seen, number())
    });
    assert_eq!(outer.await, (Some(2), Some(1)));
}

/// Also not those that are polled inside the call that spawns them, from within the scope.
#[test]
fn spawned_tasks_do_not_inherit() {
    run(NUMBER.scope(1, async {
        let at_once = spawn_local(async {
            let first = number();
            let own = NUMBER.scope(2, async { number() }).await;
            let deeper = spawn_local(async { number() }).await;
            (first, own, deeper, number())
        });
        assert_eq!(number(), Some(1));
        assert_eq!(at_once.await, (None, Some(2), None, None));
        let queue = executor().current_task_queue();
        let queued = spawn_in(queue, async { number() });
        assert_eq!(queued.await, None);
        assert_eq!(number(), Some(1));
    }));
    // Nor does a task see what surrounds its executor.
    let seen = block_on(NUMBER.scope(1, async {
        (LocalExecutor::default().run(async { number() }), number())
    }));
    assert_eq!(seen, (None, Some(1)));
}

/// The spawned task panics in its first poll: the spawner goes on to see its value.
#[test]
fn a_panic_of_a_nested_task_restores_the_value() {
    run(NUMBER.scope(1, async {
        let message = panic_of(|| {
            spawn_local(NUMBER.scope(2, async { panic!("nested") })).detach();
        });
        assert_eq!((message.as_str(), number()), ("nested", Some(1)));
    }));
}

#[test]
fn a_panic_ends_a_scope() {
    run(NUMBER.scope(1, async {
        let mut inner = Box::pin(NUMBER.scope(2, poll_fn(|_| -> Poll<()> { panic!("inside") })));
        let unwound =
            poll_fn(|cx| Poll::Ready(catch_unwind(AssertUnwindSafe(|| inner.as_mut().poll(cx)))));
        assert!(unwound.await.is_err());
        assert_eq!(number(), Some(1));
    }));
    assert_eq!(number(), None);
}

#[run_test]
async fn the_value_goes_with_the_future() {
    let drops = DropCount::default();
    drop(GUARD.scope(drops.guard(), pending::<()>()));
    assert_eq!(drops.count(), 1, "never polled");
    let mut scoped = Box::pin(GUARD.scope(drops.guard(), pending::<()>()));
    assert!(poll_once(&mut scoped).await.is_none());
    assert_eq!(drops.count(), 1);
    drop(scoped);
    assert_eq!(drops.count(), 2);
    GUARD.scope(drops.guard(), async {}).await;
    assert_eq!(drops.count(), 3);
    let task = spawn_local(GUARD.scope(drops.guard(), pending::<()>()));
    task.cancel().await;
    assert_eq!(drops.count(), 4);
}

/// While one function looks at the value, the code that it calls may, and may begin a scope.
#[test]
fn looking_is_reentrant() {
    run(NUMBER.scope(1, async {
        let seen = NUMBER.with(|outer| {
            let inner = block_on(NUMBER.scope(2, async { number() }));
            (*outer, inner, number())
        });
        assert_eq!(seen, (1, Some(2), Some(1)));
    }));
}

/// The destructor of the future comes after the scope: the value is visible while the future is
/// polled only.
#[run_test]
async fn destructors_do_not_see_it() {
    let seen = Rc::new(Cell::new(Some(0)));
    let guard = on_drop({
        let seen = Rc::clone(&seen);
        move || seen.set(number())
    });
    let mut scoped = Box::pin(NUMBER.scope(1, async move {
        let _guard = guard;
        pending::<()>().await;
    }));
    assert!(poll_once(&mut scoped).await.is_none());
    drop(scoped);
    assert_eq!(seen.get(), None);
}

#[test]
fn unset_it_panics_with_a_reason() {
    let message = panic_of(|| NUMBER.with(|_| ()));
    assert!(message.contains("LocalKey::scope"), "{message}");
    assert!(AccessError.to_string().contains("not set"));
    assert!(format!("{TEXT:?}").contains("LocalKey"));
}
