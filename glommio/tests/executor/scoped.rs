//! Scoped tasks that are dropped where they must not be, and everywhere else.

use std::mem;

use glommio::{ScopedTask, spawn_scoped_local_into};

use crate::common::aborts_in_child;
use crate::common::prelude::*;

/// Spawns `child`, which borrows, without polling it.
///
/// # Safety
///
/// As for `spawn_scoped_local`.
unsafe fn spawn_scoped<'a, T>(child: impl Future<Output = T> + 'a) -> ScopedTask<'a, T> {
    // SAFETY: promised by the caller.
    unsafe { spawn_scoped_local_into(child, TaskQueueHandle::default()) }
        .expect("the default queue exists")
}

/// When a child drops its parent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// In a poll.
    Polled,
    /// In the destructor of its future, which is ready.
    Finished,
    /// In the destructor of its future, after a panic.
    Panicked,
    /// In the destructor of its future, which was cancelled.
    Cancelled,
}

/// A parent owns a text and waits for a scoped task that borrows the text and drops the parent.
/// Then the child reads the text.
fn drop_parent(when: When) {
    type Parent = Pin<Box<dyn Future<Output = ()>>>;
    run(async move {
        let parent: Rc<RefCell<Option<Parent>>> = Rc::default();
        let found = Rc::clone(&parent);
        let future = async move {
            let text = String::from("owned by the parent");
            let borrowed = &text;
            let mut guard = Some(on_drop(move || {
                drop(found.take());
                println!("read after it was freed: {borrowed}");
            }));
            let child = poll_fn(move |_| match when {
                When::Polled => {
                    drop(guard.take());
                    Poll::Ready(())
                }
                // The guard stays in the future until that is dropped.
                When::Finished => Poll::Ready(()),
                When::Panicked => panic!("the child panics"),
                When::Cancelled => Poll::Pending,
            });
            // SAFETY: none. The child drops this future, which the contract forbids.
            let child = unsafe { spawn_scoped(child) };
            match when {
                When::Cancelled => drop(child.cancel().await),
                _ => child.await,
            }
        };
        *parent.borrow_mut() = Some(Box::pin(future));
        // Out of the cell for the poll.
        let mut polled = parent.take().expect("it was just put in");
        assert!(poll_once(&mut polled).await.is_none());
        *parent.borrow_mut() = Some(polled);
        go_on().await;
    });
}

/// Lets the other tasks run until they have done all that they do.
async fn go_on() {
    for _ in 0..10 {
        yield_now().await;
    }
}

/// `body` is ended by a `ScopedTask` that says why.
fn assert_aborts(body: impl FnOnce()) {
    let printed = aborts_in_child(body);
    let message =
        "a ScopedTask was dropped while its own future was being polled or dropped further up";
    assert!(printed.contains(message), "{printed}");
}

#[test]
fn a_child_that_drops_its_parent_reads_no_freed_memory() {
    assert_aborts(|| drop_parent(When::Polled));
}

#[test]
fn a_finished_child_whose_destructor_drops_its_parent_reads_no_freed_memory() {
    assert_aborts(|| drop_parent(When::Finished));
}

#[test]
fn a_panicked_child_whose_destructor_drops_its_parent_reads_no_freed_memory() {
    assert_aborts(|| drop_parent(When::Panicked));
}

#[test]
fn a_cancelled_child_whose_destructor_drops_its_parent_reads_no_freed_memory() {
    assert_aborts(|| drop_parent(When::Cancelled));
}

/// A grandparent's task: the child in use is two tasks below the one that is dropped.
#[test]
fn a_grandchild_that_drops_its_grandparent_reads_no_freed_memory() {
    assert_aborts(|| {
        run(async {
            let grandparent: Rc<RefCell<Option<ScopedTask<'static, ()>>>> = Rc::default();
            let found = Rc::clone(&grandparent);
            let future = async move {
                let text = String::from("owned by the grandparent");
                let borrowed = &text;
                let parent = async move {
                    let child = async move {
                        drop(found.take());
                        println!("read after it was freed: {borrowed}");
                    };
                    // SAFETY: none, as above.
                    unsafe { spawn_scoped(child) }.await;
                };
                // SAFETY: none, as above.
                unsafe { spawn_scoped(parent) }.await;
            };
            // SAFETY: it borrows nothing, but is dropped inside a poll of a task that borrows
            // from it.
            let task = unsafe { spawn_scoped(future) };
            *grandparent.borrow_mut() = Some(task);
            go_on().await;
        });
    });
}

/// Whatever state the task is in and wherever it is dropped.
#[run_test(in_child)]
fn scoped_tasks_that_are_not_in_use_are_dropped_without_an_abort() {
    let drops = DropCount::default();
    let spawned = |polls_before_ready: usize| {
        let guard = drops.guard();
        let future = async move {
            let _guard = guard;
            for _ in 0..polls_before_ready {
                yield_now().await;
            }
        };
        // SAFETY: nothing is borrowed.
        unsafe { spawn_scoped(future) }
    };
    let executor = LocalExecutor::default();
    let mut dropped = 0;
    let mut expect_dropped = |count: usize| {
        dropped += count;
        assert_eq!(drops.count(), dropped);
    };
    executor.run(async {
        // Unpolled, waiting, woken, finished.
        for polls in 0..4 {
            let task = spawned(2);
            for _ in 0..polls {
                yield_now().await;
            }
            drop(task);
            expect_dropped(1);
        }
        // In another task, and inside its destructor.
        let task = spawned(2);
        spawn_local(async move { drop(task) }).await;
        let task = spawned(2);
        drop(spawn_local(keep(task)));
        yield_now().await;
        expect_dropped(2);
        // Cancelled, the answer awaited or given up.
        assert_eq!(spawned(2).cancel().await, None);
        drop(spawned(2).cancel());
        let mut cancelled = Box::pin(spawned(2).cancel());
        assert!(poll_once(&mut cancelled).await.is_none());
        drop(cancelled);
        expect_dropped(3);
    });
    // While a panic unwinds, that of the task itself included.
    let panics = || {
        executor.run(async {
            let _waits = spawned(2);
            // SAFETY: nothing is borrowed.
            unsafe { spawn_scoped(async { panic!("as intended") }) }.await;
        });
    };
    assert_eq!(panic_of(panics), "as intended");
    expect_dropped(1);
    // Outside of the executor, alive and dead.
    let tasks = executor.run(async { [(); 2].map(|()| spawned(2)) });
    let [first, second] = tasks;
    drop(first);
    expect_dropped(1);
    // With the executor: the parent's future before the child's and after it, and
    // forgotten.
    executor.run(async {
        for is_first in [true, false] {
            let parent = |child| spawn_local(keep(child));
            if is_first {
                let cell: Rc<RefCell<Option<ScopedTask<'_, ()>>>> = Rc::default();
                parent(Rc::clone(&cell)).detach();
                *cell.borrow_mut() = Some(spawned(usize::MAX));
            } else {
                parent(Rc::new(RefCell::new(Some(spawned(usize::MAX))))).detach();
            }
        }
        mem::forget(spawned(usize::MAX));
    });
    drop(executor);
    expect_dropped(4);
    drop(second);
}

/// Waits for ever with `kept`.
async fn keep<T>(kept: T) {
    let _kept = kept;
    pending::<()>().await;
}
