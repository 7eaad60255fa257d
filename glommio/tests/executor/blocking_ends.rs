//! Blocking calls that end badly: with a panic that panics again, with their executor, or for want
//! of a thread.

use std::panic::panic_any;

use nix::sys::resource::Resource;

use crate::blocking::with_threads;
use crate::common::log::panicking_log_everywhere;
use crate::common::mapped_bytes;
use crate::common::prelude::*;

type Call<R> = Pin<Box<dyn Future<Output = R>>>;

fn call<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> Call<R> {
    Box::pin(executor().spawn_blocking(f))
}

/// A call that ends, as `f` does, after its future was dropped.
async fn discarded<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) {
    let (gone, wait) = mpsc::channel::<()>();
    let mut call = call(move || {
        let _ = wait.recv();
        f()
    });
    assert!(poll_once(&mut call).await.is_none());
    drop(call);
    drop(gone);
}

#[run_test]
fn results_and_panics_that_panic_when_they_are_dropped_do_not_end_the_only_thread() {
    with_threads(1).run(async {
        for _ in 0..10 {
            discarded(bomb).await;
            discarded(|| panic_any(bomb())).await;
            discarded(|| {
                let _captured = bomb();
            })
            .await;
        }
        assert_eq!(executor().spawn_blocking(|| 1).await, 1);
    });
}

#[run_test(in_child)]
fn results_that_panic_when_they_are_dropped_do_not_abort_an_unwinding_thread() {
    for is_panic in [false, true] {
        let executor = with_threads(1);
        let message = panic_of(|| {
            executor.run(async {
                let (go_on, wait) = mpsc::channel::<()>();
                let mut unclaimed = call(move || {
                    let _ = wait.recv();
                    let bomb = bomb();
                    if is_panic {
                        panic_any(bomb);
                    }
                    bomb
                });
                assert!(poll_once(&mut unclaimed).await.is_none());
                drop(go_on);
                // The one thread has done it when it has done the next.
                call(|| ()).await;
                panic!("unwinds past the result");
            });
        });
        assert_eq!(message, "unwinds past the result");
        assert_eq!(executor.run(async { call(|| 2).await }), 2);
    }
}

/// The pool's thread tells the log of each.
#[run_test(in_child)]
fn a_log_that_panics_does_not_end_the_only_thread() {
    let logged = panicking_log_everywhere();
    with_threads(1).run(async {
        discarded(bomb).await;
        discarded(|| panic_any(bomb())).await;
        assert_eq!(executor().spawn_blocking(|| 1).await, 1);
    });
    assert_eq!(logged(), 2);
}

#[run_test]
fn a_call_of_a_dropped_executor_panics_at_once() {
    let executor = LocalExecutor::default();
    let mut call = executor.run(async { call(|| unreachable!("not called")) });
    drop(executor);
    for poll in ["executor was dropped", "after"] {
        let message = panic_of(|| block_on(&mut call));
        assert!(message.contains(poll), "{message}");
    }
}

/// Queued ones, and those that did not fit into the queue, with a task of another executor waiting
/// for each.
#[run_test]
fn a_task_that_waits_for_a_discarded_call_is_woken_and_panics() {
    const PLACES: usize = 4096;
    let (first, second) = (with_threads(1), LocalExecutor::default());
    let (go_on, wait) = mpsc::channel::<()>();
    let (start, started) = mpsc::channel();
    let mut calls = first.run(async {
        let mut calls: Vec<Call<()>> = vec![call(move || {
            start.send(()).expect("it is awaited");
            let _ = wait.recv();
        })];
        calls.extend((0..PLACES + 10).map(|_| call(|| unreachable!("not called"))));
        calls
    });
    let mut running = calls.remove(0);
    let panics = Rc::new(RefCell::new(Vec::new()));
    second.run(async {
        assert!(poll_once(&mut running).await.is_none());
        started.recv().expect("there is a thread for it");
        let mut tasks = Vec::new();
        for mut call in calls {
            assert!(poll_once(&mut call).await.is_none());
            let panics = Rc::clone(&panics);
            tasks.push(spawn_local(async move {
                std::future::poll_fn(|cx| {
                    let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        call.as_mut().poll(cx)
                    }));
                    polled.unwrap_or_else(|payload| {
                        let message = payload.downcast::<String>().expect("a message");
                        panics.borrow_mut().push(*message);
                        std::task::Poll::Ready(())
                    })
                })
                .await;
            }));
        }
        yield_now().await;
        assert!(panics.borrow().is_empty());
        drop(first);
        join_all(tasks).await;
        // The one that runs is not given up.
        go_on.send(()).expect("it waits");
        running.await;
    });
    let panics = panics.take();
    assert_eq!(panics.len(), PLACES + 10);
    assert!(panics.iter().all(|it| it.contains("executor was dropped")));
}

const STACK_BYTES: u64 = 512 << 20;

/// Has no thread be created in this process, which is a child of a test, until what is returned is
/// dropped: there is memory for everything but a stack.
pub(crate) fn no_threads() -> impl Drop {
    struct Until(u64);
    impl Drop for Until {
        fn drop(&mut self) {
            set_limit(Resource::RLIMIT_AS, self.0);
        }
    }
    let (before, _) = nix::sys::resource::getrlimit(Resource::RLIMIT_AS).expect("it exists");
    set_limit(Resource::RLIMIT_AS, mapped_bytes() as u64 + STACK_BYTES / 2);
    std::thread::Builder::new()
        .spawn(|| ())
        .expect_err("there is no memory for a stack");
    Until(before)
}

pub(crate) fn in_child_with_large_stacks(body: impl FnOnce()) {
    let stack = STACK_BYTES.to_string();
    in_child_with(&[("RUST_MIN_STACK", &stack)], body);
}

#[run_test(in_child_with_large_stacks)]
fn calls_wait_in_line_while_the_system_has_no_thread() {
    let executor = with_threads(1);
    for _ in 0..2 {
        // In the second round there is a thread.
        let no_threads = no_threads();
        let order = Arc::new(Mutex::new(Vec::new()));
        let has_ended = Arc::new(AtomicBool::new(false));
        let task = executor.run(async {
            let tasks: Vec<_> = (0..100)
                .map(|i| {
                    let order = Arc::clone(&order);
                    spawn_local(call(move || order.lock().unwrap().push(i)))
                })
                .collect();
            let set = Arc::clone(&has_ended);
            let all = spawn_local(async move {
                join_all(tasks).await;
                set.store(true, Ordering::SeqCst);
            });
            // Everything else goes on, also from one run to the next.
            sleep(Duration::from_millis(250)).await;
            all
        });
        executor.run(sleep(Duration::from_millis(50)));
        drop(no_threads);
        executor.run(async {
            spawn_local(call(|| ())).await;
            task.await;
        });
        assert!(has_ended.load(Ordering::SeqCst));
        assert!(order.lock().unwrap().iter().copied().eq(0..100));
    }
}

#[test]
fn calls_that_waited_for_threads_get_all_of_the_pool() {
    const THREADS: usize = 4;
    in_child_with_large_stacks(|| {
        let executor = with_threads(THREADS);
        let no_threads = no_threads();
        let barrier = Arc::new(Barrier::new(THREADS));
        let tasks: Vec<_> = executor.run(async {
            let tasks = (0..THREADS).map(|_| {
                let barrier = Arc::clone(&barrier);
                spawn_local(call(move || barrier.wait().is_leader()))
            });
            tasks.collect()
        });
        drop(no_threads);
        let mut leaders = 0;
        for task in tasks {
            leaders += usize::from(executor.run(task));
        }
        assert_eq!(leaders, 1);
    });
}

#[run_test(in_child_with_large_stacks)]
fn no_call_has_run_while_the_system_had_no_thread() {
    for is_polled_elsewhere in [false, true] {
        let _no_threads = no_threads();
        let executor = LocalExecutor::default();
        let ran = Arc::new(AtomicBool::new(false));
        let (set, dropped) = (Arc::clone(&ran), Arc::new(AtomicBool::new(false)));
        let sets = Arc::clone(&dropped);
        let captured = on_drop(move || sets.store(true, Ordering::SeqCst));
        let mut call = executor.run(async {
            call(move || {
                let _captured = captured;
                set.store(true, Ordering::SeqCst);
            })
        });
        if is_polled_elsewhere {
            // The executor does not go on while it is waited for.
            let message = panic_of(|| block_on(&mut call));
            assert!(
                message.contains("Resource temporarily unavailable"),
                "{message}"
            );
        } else {
            executor.run(async {
                assert!(poll_once(&mut call).await.is_none());
                sleep(Duration::from_millis(150)).await;
                assert!(poll_once(&mut call).await.is_none());
            });
            assert!(!dropped.load(Ordering::SeqCst));
            drop(executor);
            let message = panic_of(|| block_on(&mut call));
            assert!(message.contains("executor was dropped"), "{message}");
        }
        assert!(!ran.load(Ordering::SeqCst));
        wait_until(|| dropped.load(Ordering::SeqCst));
    }
}
