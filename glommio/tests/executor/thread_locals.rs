//! Tasks and executors in the thread-locals of a program, which are destroyed when others are gone
//! already.
//!
//! A panic in there aborts the process, so each case is a process of its own. The locals of a
//! thread are destroyed in the reverse order of their first uses.

use crate::common::ending_child;
use crate::common::prelude::*;

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Calls a function when its thread ends, as late as it was first used early.
struct AtEnd(RefCell<Option<Box<dyn FnOnce()>>>);

impl AtEnd {
    const fn new() -> Self {
        AtEnd(RefCell::new(None))
    }

    fn set(&self, f: impl FnOnce() + 'static) {
        *self.0.borrow_mut() = Some(Box::new(f));
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

thread_local! {
    static OLDER: AtEnd = const { AtEnd::new() };
}

/// Has the locals of a thread be destroyed after an executor ran on it, this one last.
fn on_a_thread(last: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        OLDER.with(|it| it.set(last));
        LocalExecutor::default().run(sleep(Duration::from_millis(1)));
    })
    .join()
    .expect("the thread ends in good order");
}

#[test]
fn a_task_that_is_dropped_when_the_process_exits_in_another_does_not_abort_it() {
    let printed = ending_child(|| {
        OLDER.with(|_| ());
        LocalExecutor::default().run(async {
            let task: Task<()> = spawn_local(pending());
            let parking = Parking::default();
            spawn_local(parking.clone()).detach();
            OLDER.with(|it| {
                it.set(move || {
                    drop(task);
                    parking.open();
                    println!("cancelled and woken");
                });
            });
            std::process::exit(0);
        });
    });
    assert!(printed.contains("cancelled and woken"), "{printed}");
}

#[run_test(in_child)]
fn a_task_that_is_dropped_with_its_thread_does_not_abort_the_process() {
    thread::spawn(|| {
        OLDER.with(|_| ());
        let executor = LocalExecutor::default();
        let task: Task<()> = executor.spawn(sleep(AN_HOUR));
        executor.run(yield_now());
        OLDER.with(|it| it.set(move || drop((task, executor))));
    })
    .join()
    .expect("the thread ends in good order");
}

#[run_test(in_child)]
fn an_executor_runs_while_the_locals_of_its_thread_are_destroyed() {
    static SUM: AtomicUsize = AtomicUsize::new(0);
    on_a_thread(|| {
        let sum = LocalExecutor::default().run(async {
            sleep(Duration::from_millis(1)).await;
            let task = spawn_local(async {
                yield_now().await;
                1
            });
            task.await + executor().spawn_blocking(|| 2).await
        });
        SUM.store(sum, Ordering::SeqCst);
    });
    assert_eq!(SUM.load(Ordering::SeqCst), 3);
}

#[test]
fn an_executor_whose_task_ends_the_process_is_dropped_with_the_locals() {
    thread_local! {
        static EXECUTOR: LocalExecutor = LocalExecutor::default();
    }
    let printed = ending_child(|| {
        EXECUTOR.with(|it| {
            it.run(async {
                let id = executor().id();
                let guard = on_drop(move || {
                    println!("dropped under its executor: {}", executor().id() == id);
                });
                spawn_local(async move {
                    let _guard = guard;
                    sleep(AN_HOUR).await;
                })
                .detach();
                std::process::exit(0);
            });
        });
    });
    assert!(
        printed.contains("dropped under its executor: true"),
        "{printed}"
    );
}

#[run_test(in_child)]
fn a_panic_of_a_task_that_is_dropped_with_the_locals_does_not_abort() {
    on_a_thread(|| {
        let executor = LocalExecutor::default();
        let bomb = on_drop(|| panic!("in the destructor of a task"));
        let task = executor.spawn(async move {
            let _bomb = bomb;
            sleep(AN_HOUR).await;
        });
        task.detach();
        executor.run(yield_now());
        drop(executor);
    });
}
