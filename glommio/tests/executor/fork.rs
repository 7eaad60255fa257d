//! Executors in children of `fork(2)`. Each case is a process of its own, which forks.

use crate::common::prelude::*;
use crate::common::{FORK_ENDED_WELL, fork, wait_for_fork};
use crate::faults::{basic_workload, deny};

const MESSAGE: &str = "belongs to the process that this one was forked from";

/// Timers, sockets and blocking calls.
async fn work() {
    let (listener, address) = bound().expect("a port is free");
    let echo = spawn_local(async move {
        let mut stream = listener.accept().await.expect("a client connects");
        sleep(Duration::from_millis(1)).await;
        stream.write_all(b"echo").await.expect("it is connected");
    });
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).await.expect("it answers");
    assert_eq!(&bytes, b"echo");
    echo.await;
    assert_eq!(executor().spawn_blocking(|| 7).await, 7);
}

/// An executor with much under way: a timer, an accept, blocking threads, slices that have ended.
fn busy_executor(drops: &DropCount) -> LocalExecutor {
    let executor = LocalExecutor::default();
    let guard = drops.guard();
    executor.run(async move {
        work().await;
        spawn_local(async move {
            let _guard = guard;
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let accepted = listener.accept().await;
            unreachable!("no client knows the port: {accepted:?}");
        })
        .detach();
        spawn_local(sleep(Duration::from_secs(3600))).detach();
        spin_until_preempted();
        sleep(Duration::from_millis(1)).await;
    });
    executor
}

#[run_test(in_child)]
fn an_inherited_executor_says_so_and_leaves_the_parents_alone() {
    let drops = DropCount::default();
    let executor = busy_executor(&drops);
    for is_dropped in [false, true] {
        fork(|| {
            assert!(panic_of(|| executor.run(async {})).contains(MESSAGE));
            // Twice: the first has left nothing behind.
            assert!(panic_of(|| executor.run(work())).contains(MESSAGE));
            LocalExecutor::default().run(work());
            if is_dropped {
                // SAFETY: the child ends by `_exit`: its copy is not used or dropped again.
                drop(unsafe { std::ptr::read(&raw const executor) });
                assert_eq!(drops.count(), 0);
                LocalExecutor::default().run(work());
            }
        });
        executor.run(work());
    }
    drop(executor);
    assert_eq!(drops.count(), 1);
}

#[run_test(in_child)]
fn a_child_forked_by_a_task_is_told_when_the_task_goes_on() {
    // What the child does after the fork, while it is in the task of its parent.
    let goes_on: [fn(); 3] = [
        || (),
        || while !executor().need_preempt() {},
        || drop(spawn_local(work())),
    ];
    for go_on in goes_on {
        let executor = LocalExecutor::default();
        let forked = Rc::new(Cell::new(None));
        let in_task = Rc::clone(&forked);
        let run = || {
            executor.run(async move {
                let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
                sleep(Duration::from_millis(1)).await;
                // SAFETY: as in `fork`.
                in_task.set(Some(unsafe { libc::fork() }));
                if in_task.get() == Some(0) {
                    // SAFETY: as above.
                    unsafe { libc::alarm(100) };
                    go_on();
                }
                sleep(Duration::from_millis(1)).await;
                drop(listener);
                work().await;
            });
        };
        let ended = catch_unwind(AssertUnwindSafe(run));
        match forked.get() {
            Some(0) => {
                let is_told = ended.is_err_and(|panic| {
                    panic
                        .downcast_ref::<&str>()
                        .is_some_and(|it| it.contains(MESSAGE))
                });
                // What a child does that leaves `run`.
                let dropped = catch_unwind(AssertUnwindSafe(|| drop(executor)));
                let works = catch_unwind(|| LocalExecutor::default().run(work()));
                let is_well = is_told && dropped.is_ok() && works.is_ok();
                // SAFETY: as in `fork`.
                unsafe { libc::_exit(if is_well { FORK_ENDED_WELL } else { 1 }) };
            }
            Some(pid) => {
                ended.expect("the parent's task goes on");
                wait_for_fork(pid);
            }
            None => panic!("it did not fork"),
        }
    }
}

/// A grandchild, whose ancestors have all made executors.
#[run_test(in_child)]
fn children_of_children_tell_all_inherited_executors_from_their_own() {
    fn generation(inherited: &[&LocalExecutor], left: usize) {
        for executor in inherited {
            assert!(panic_of(|| executor.run(async {})).contains(MESSAGE));
        }
        let own = LocalExecutor::default();
        own.run(work());
        if left > 0 {
            let inherited = [inherited, &[&own]].concat();
            fork(|| generation(&inherited, left - 1));
        }
        own.run(work());
    }
    generation(&[], 3);
}

#[run_test(in_child)]
fn a_listener_dropped_in_a_forked_child_still_accepts_in_the_parent() {
    let executor = LocalExecutor::default();
    let listener = executor.run(async {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        // The kernel goes on accepting.
        assert!(poll_once(listener.accept()).await.is_none());
        sleep(Duration::from_millis(1)).await;
        listener
    });
    fork(|| {
        // SAFETY: as above.
        drop(unsafe { std::ptr::read(&raw const listener) });
    });
    executor.run(async {
        let address = listener.local_addr().expect("it is bound");
        let _client = TcpStream::connect(address).await.expect("it listens");
        listener.accept().await.expect("there is a client");
    });
}

/// Destructors of the parent's tasks do not run in a child.
#[run_test(in_child)]
fn a_child_that_panics_past_an_inherited_executor_runs_no_destructor_of_a_task() {
    let executor = LocalExecutor::default();
    let ran = Rc::new(Cell::new(false));
    let noted = Rc::clone(&ran);
    let waits: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
        let _noted = on_drop(move || noted.set(true));
        std::future::pending::<()>().await;
    });
    executor.run(async {
        spawn_local(waits).detach();
    });
    fork(|| {
        // SAFETY: as above.
        let inherited = unsafe { std::ptr::read(&raw const executor) };
        let message = panic_of(move || {
            let _dropped = inherited;
            panic!("as intended")
        });
        assert_eq!((message.as_str(), ran.get()), ("as intended", false));
    });
    drop(executor);
    assert!(ran.get());
}

/// As gVisor has it.
#[run_test(in_child)]
fn where_the_kernel_does_not_wipe_pages_a_fork_is_seen_all_the_same() {
    deny(libc::SYS_madvise, libc::EINVAL);
    basic_workload();
    let executor = LocalExecutor::default();
    executor.run(sleep(Duration::from_millis(1)));
    fork(|| {
        assert!(panic_of(|| executor.run(async {})).contains(MESSAGE));
        basic_workload();
    });
    executor.run(sleep(Duration::from_millis(1)));
}
