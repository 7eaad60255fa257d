//! Panics in the middle of dropping an executor: all the rest is done, and the first of them goes
//! on.

use std::panic::panic_any;

use futures_lite::AsyncRead as _;

use crate::blocking::with_threads;
use crate::common::log::with_panicking_log;
use crate::common::prelude::*;

const AN_HOUR: Duration = Duration::from_secs(3600);

/// An executor that has something of everything: a task, a connection to be accepted, a blocking
/// thread. Beside it the waker of a task, which outlives it.
fn busy_executor(drops: &DropCount) -> (LocalExecutor, Waker) {
    let executor = LocalExecutor::default();
    let guard = drops.guard();
    let parking = Parking::default();
    executor.spawn(parking.clone()).detach();
    executor
        .spawn(async move {
            let _guard = guard;
            let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
            drop(listener.accept().await);
        })
        .detach();
    executor.run(async {
        glommio::executor().spawn_blocking(|| ()).await;
        sleep(Duration::from_millis(1)).await;
    });
    (executor, parking.waker().expect("the task has been polled"))
}

/// A task that calls `f` when it is dropped.
fn when_dropped(executor: &LocalExecutor, f: impl FnOnce() + 'static) {
    let guard = on_drop(f);
    executor
        .spawn(async move {
            let _guard = guard;
            sleep(AN_HOUR).await;
        })
        .detach();
}

/// Drops busy executors, which `arm` has prepared, and sees nothing of them left. What the drop
/// panicked with. To be called in a process of its own.
fn drop_leaves_nothing(arm: impl Fn(&LocalExecutor)) -> Vec<Option<String>> {
    let mut wakers = Vec::new();
    let mut ends = Vec::new();
    let (fds, threads_before) = (descriptors(), threads());
    for _ in 0..3 {
        let drops = DropCount::default();
        let (executor, waker) = busy_executor(&drops);
        wakers.push(waker);
        arm(&executor);
        let end = catch_unwind(AssertUnwindSafe(|| drop(executor)));
        ends.push(end.err().map(|payload| match payload.downcast::<&str>() {
            Ok(message) => String::from(*message),
            Err(payload) => {
                std::mem::forget(payload);
                String::from("no message")
            }
        }));
        assert_eq!(drops.count(), 1);
        assert_eq!(descriptors(), fds);
        wait_until(|| threads() == threads_before);
        LocalExecutor::default().run(sleep(Duration::from_millis(1)));
    }
    ends
}

#[run_test(in_child)]
fn a_panic_that_panics_when_it_is_dropped_does_not_stop_the_drop() {
    let ends = drop_leaves_nothing(|executor| {
        when_dropped(executor, || panic!("the first"));
        when_dropped(executor, || panic_any(bomb()));
        when_dropped(executor, || panic_any(bomb()));
    });
    assert_eq!(ends, vec![Some(String::from("the first")); 3]);
}

#[run_test(in_child)]
fn a_panic_that_panics_when_it_is_dropped_does_not_abort_an_unwinding_thread() {
    let (fds, threads_before) = (descriptors(), threads());
    let mut kept = None;
    let drops = DropCount::default();
    let message = panic_of(|| {
        let (executor, waker) = busy_executor(&drops);
        kept = Some(waker);
        when_dropped(&executor, || panic_any(bomb()));
        when_dropped(&executor, || panic_any(bomb()));
        executor.run(async { panic!("past the executor") });
    });
    assert_eq!(message, "past the executor");
    assert_eq!(drops.count(), 1);
    assert_eq!(descriptors(), fds);
    wait_until(|| threads() == threads_before);
    LocalExecutor::default().run(sleep(Duration::from_millis(1)));
}

/// What is logged when panics are contained is told to code of others.
#[run_test(in_child)]
fn a_log_that_panics_does_not_stop_the_drop() {
    let (ends, logged) = with_panicking_log(|| {
        drop_leaves_nothing(|executor| {
            when_dropped(executor, || panic!("the first"));
            when_dropped(executor, || panic!("the second"));
        })
    });
    assert_eq!(ends, vec![Some(String::from("the first")); 3]);
    assert_eq!(logged, 3);
}

/// A connection that comes in while the executor is dropped wakes the task that waits for one.
#[run_test(in_child)]
fn a_waker_and_a_log_that_panic_in_the_drain_do_not_stop_it() {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic_any(bomb());
        }
    }
    let mut listeners = Vec::new();
    let mut clients = Vec::new();
    let mut addresses = Vec::new();
    let fds = descriptors();
    let (_, logged) = with_panicking_log(|| {
        let drops = DropCount::default();
        let (executor, _waker) = busy_executor(&drops);
        for _ in 0..2 {
            executor.run(async {
                let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
                addresses.push(listener.local_addr().expect("it is bound"));
                let waker = Waker::from(Arc::new(Bomb));
                let accepts = listener.poll_accept(&mut Context::from_waker(&waker));
                assert!(accepts.is_pending());
                sleep(Duration::from_millis(1)).await;
                listeners.push(listener);
            });
        }
        for address in &addresses {
            let client = std::net::TcpStream::connect(address).expect("the kernel accepts");
            clients.push(client);
        }
        drop(executor);
        assert_eq!(drops.count(), 1);
    });
    assert_eq!(logged, 2, "both were woken, in the drain");
    listeners.clear();
    clients.clear();
    assert_eq!(descriptors(), fds);
    LocalExecutor::default().run(sleep(Duration::from_millis(1)));
}

/// Polls with a waker that panics when its last clone is dropped.
fn poll_with_bomb<R>(poll: impl FnOnce(&mut Context<'_>) -> Poll<R>) {
    struct Bomb;
    impl Wake for Bomb {
        fn wake(self: Arc<Self>) {
            std::mem::forget(self);
        }
    }
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in the destructor of a waker");
        }
    }
    let waker = Waker::from(Arc::new(Bomb));
    assert!(poll(&mut Context::from_waker(&waker)).is_pending());
}

/// In all places that keep the waker of a waiting task.
#[run_test(in_child)]
fn wakers_that_panic_when_they_are_dropped_do_not_abort_an_unwinding_thread() {
    let executor = LocalExecutor::default();
    let message = panic_of(|| {
        executor.run(async {
            let bind = || TcpListener::bind("127.0.0.1:0").expect("loopback is there");
            let (polled, accepts) = (bind(), bind());
            for _ in 0..2 {
                poll_with_bomb(|cx| polled.poll_accept(cx));
            }
            let mut accept = pin!(accepts.accept());
            poll_with_bomb(|cx| accept.as_mut().poll(cx));
            let mut timer = pin!(sleep(AN_HOUR));
            poll_with_bomb(|cx| timer.as_mut().poll(cx));
            let mut task = spawn_local(sleep(AN_HOUR)).detach();
            poll_with_bomb(|cx| Pin::new(&mut task).poll(cx));
            let server = std::net::TcpListener::bind("127.0.0.1:0").expect("as above");
            let address = server.local_addr().expect("it is bound");
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            poll_with_bomb(|cx| Pin::new(&mut stream).poll_read(cx, &mut [0; 8]));
            panic!("past all of them");
        });
    });
    assert_eq!(message, "past all of them");
    executor.run(sleep(Duration::from_millis(1)));
}

/// Those of timers that are not dropped by then.
#[run_test(in_child)]
fn wakers_that_panic_when_they_are_dropped_do_not_stop_the_drop() {
    for is_unwinding in [false, true] {
        let mut timers = Vec::new();
        let fds = descriptors();
        let message = panic_of(|| {
            let executor = LocalExecutor::default();
            executor.run(async {
                for _ in 0..300 {
                    let mut timer = Timer::new(AN_HOUR);
                    poll_with_bomb(|cx| Pin::new(&mut timer).poll(cx));
                    timers.push(timer);
                }
            });
            if is_unwinding {
                panic!("past the executor");
            }
            drop(executor);
            panic!("after its drop");
        });
        let expected = ["after its drop", "past the executor"];
        assert_eq!(message, expected[usize::from(is_unwinding)]);
        assert_eq!(descriptors(), fds);
        drop(timers);
    }
}

/// Calls a function when the queue that it belongs to is gone.
struct Manager(Cell<Option<Box<dyn FnOnce()>>>);

impl SharesManager for Manager {
    fn shares(&self) -> usize {
        100
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

fn managed(when_dropped: impl FnOnce() + 'static) -> Shares {
    let when_dropped: Box<dyn FnOnce()> = Box::new(when_dropped);
    Shares::Dynamic(Rc::new(Manager(Cell::new(Some(when_dropped)))))
}

fn queue(shares: Shares) -> glommio::TaskQueueHandle {
    executor().create_task_queue(shares, Latency::NotImportant, "managed")
}

fn add_queue(executor: &LocalExecutor, when_dropped: impl FnOnce() + 'static) {
    executor.run(async {
        let queue = queue(managed(when_dropped));
        // One that runs, and one that is left to be dropped.
        spawn_in(queue, yield_now()).await;
        spawn_in(queue, sleep(AN_HOUR)).detach();
        yield_now().await;
    });
}

#[run_test(in_child)]
fn a_shares_manager_that_spawns_in_its_destructor_does_not_stop_the_drop() {
    let spawned = DropCount::default();
    let spawns = || {
        let guards = [spawned.guard(), spawned.guard(), spawned.guard()];
        move || {
            let [first, second, third] = guards;
            spawn_local(async move {
                let _first = first;
                unreachable!("not polled");
            })
            .detach();
            let made = queue(Shares::default());
            let task = spawn_local_into(
                async move {
                    let _second = second;
                    unreachable!("not polled");
                },
                made,
            );
            task.expect("it was just made").detach();
            // A queue like the one that goes, made by it.
            let nested = queue(managed(move || {
                spawn_local(async move { drop(third) }).detach();
            }));
            assert_eq!(nested.index(), made.index() + 1);
        }
    };
    let ends = drop_leaves_nothing(|executor| {
        add_queue(executor, spawns());
        add_queue(executor, spawns());
    });
    assert_eq!(ends, [const { None }; 3]);
    assert_eq!(spawned.count(), 3 * 2 * 3);
    // The panic that was kept is not lost over it.
    let ends = drop_leaves_nothing(|executor| {
        add_queue(executor, spawns());
        when_dropped(executor, || panic!("kept"));
    });
    assert_eq!(ends, vec![Some(String::from("kept")); 3]);
}

#[run_test(in_child)]
fn a_shares_manager_that_panics_in_its_destructor_does_not_stop_the_drop() {
    let ends = drop_leaves_nothing(|executor| {
        add_queue(executor, || panic!("the first"));
        add_queue(executor, || panic_any(bomb()));
        add_queue(executor, || panic!("the last"));
    });
    assert_eq!(ends, vec![Some(String::from("the first")); 3]);
    let ends = drop_leaves_nothing(|executor| {
        add_queue(executor, || panic_any(bomb()));
        when_dropped(executor, || panic!("kept"));
    });
    assert_eq!(ends, vec![Some(String::from("kept")); 3]);
    let message = panic_of(|| {
        let executor = LocalExecutor::default();
        add_queue(&executor, || panic!("the first"));
        add_queue(&executor, || panic_any(bomb()));
        panic!("past the executor");
    });
    assert_eq!(message, "past the executor");
}

#[run_test]
fn a_shares_manager_may_come_back_when_its_queue_is_removed() {
    let executor = LocalExecutor::default();
    executor.run(async {
        let polled = Rc::new(Cell::new(false));
        let set = Rc::clone(&polled);
        let handle = queue(managed(move || {
            queue(Shares::default());
            spawn_local(async move { set.set(true) }).detach();
        }));
        glommio::executor()
            .remove_task_queue(handle)
            .expect("it is idle");
        assert!(polled.get());
        let handle = queue(managed(|| panic!("in the destructor")));
        let message = panic_of(|| glommio::executor().remove_task_queue(handle));
        assert_eq!(message, "in the destructor");
        assert!(glommio::executor().remove_task_queue(handle).is_err());
    });
}

/// Destructors that wait for a blocking call come to an end: with its result while the tasks are
/// dropped, with a panic when the blocking threads have been told to end.
#[run_test]
fn destructors_that_wait_for_a_blocking_call_come_to_an_end() {
    let call = || block_on(executor().spawn_blocking(|| 7));
    let executor = LocalExecutor::default();
    when_dropped(&executor, move || assert_eq!(call(), 7));
    executor.run(yield_now());
    drop(executor);

    let executor = LocalExecutor::default();
    add_queue(&executor, move || assert_eq!(call(), 7));
    let message = panic_of(|| drop(executor));
    assert!(message.contains("executor was dropped"), "{message}");

    let executor = with_threads(1);
    let (go_on, wait) = mpsc::channel::<()>();
    executor.run(async {
        // The first call lasts until the second was discarded.
        spawn_local(glommio::executor().spawn_blocking(move || wait.recv())).detach();
        let captured = on_drop(move || assert_eq!(call(), 7));
        spawn_local(glommio::executor().spawn_blocking(move || drop(captured))).detach();
    });
    let message = panic_of(|| drop(executor));
    assert!(message.contains("executor was dropped"), "{message}");
    drop(go_on);
}
