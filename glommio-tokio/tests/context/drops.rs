//! Futures that are given up.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use futures_lite::future::poll_once;
use glommio::{LocalExecutor, executor, spawn_local, timer};
use glommio_tokio::{Tokio, WithTokio, with_tokio};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::{Error, PATIENCE, Result, run, sleep_of_tokio};

/// Notes whether it is dropped in a context, by spawning as the connections of sqlx do.
struct Spawner(mpsc::Sender<bool>);

impl Drop for Spawner {
    fn drop(&mut self) {
        let has_context = Handle::try_current().is_ok();
        if has_context {
            drop(tokio::spawn(async {}));
        }
        let _ = self.0.send(has_context);
    }
}

#[test]
fn destructors_have_the_context_wherever_a_future_is_dropped() {
    let (drops, seen) = mpsc::channel();
    let future = |is_awaited| {
        let spawner = Spawner(drops.clone());
        with_tokio(async move {
            let _spawner = spawner;
            if is_awaited {
                std::future::pending::<()>().await;
            }
        })
    };
    run(async {
        drop(future(true)); // not polled
        let mut polled = Box::pin(future(true));
        assert!(poll_once(polled.as_mut()).await.is_none());
        drop(polled);
        future(false).await; // its end
        let task = spawn_local(future(true));
        executor().yield_task_queue_now().await;
        task.cancel().await;
        spawn_local(future(true)).detach(); // dropped by the executor's end
        executor().yield_task_queue_now().await;
        Ok(())
    });
    let seen: Vec<_> = (0..5).map(|_| seen.recv_timeout(PATIENCE)).collect();
    assert_eq!(seen, [Ok(true); 5]);
}

/// As a pooled connection of sqlx, it panics where it is dropped without a context.
struct Connection(Rc<Cell<usize>>);

impl Drop for Connection {
    fn drop(&mut self) {
        tokio::spawn(async {});
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_handler_that_returns_early_drops_its_connection_in_the_context() {
    async fn handler(tokio: &Tokio, dropped: &Rc<Cell<usize>>) -> Result<()> {
        let connect = async { Ok::<_, Error>(Connection(Rc::clone(dropped))) };
        let connection = tokio.keep(tokio.with(connect).await?);
        executor().yield_task_queue_now().await;
        tokio.with(async { Err("the query failed") }).await?;
        drop(connection);
        Ok(())
    }
    async fn whole_handler(dropped: &Rc<Cell<usize>>) -> Result<()> {
        let connection = Connection(Rc::clone(dropped));
        executor().yield_task_queue_now().await;
        Err("the query failed")?;
        drop(connection);
        Ok(())
    }
    run(async {
        let tokio = Tokio::start()?;
        let dropped = Rc::default();
        handler(&tokio, &dropped).await.expect_err("it failed");
        assert_eq!(dropped.get(), 1);
        let scope = tokio.scope(whole_handler(&dropped));
        scope.await.expect_err("it failed");
        assert_eq!(dropped.get(), 2);
        Ok(())
    });
}

/// A destructor that panics then aborts the process.
#[test]
fn a_handler_that_panics_drops_its_connection_in_the_context() {
    let dropped = Rc::default();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        run(async {
            let tokio = Tokio::start()?;
            let _connection = tokio.keep(Connection(Rc::clone(&dropped)));
            let scope = tokio.scope(async {
                let _connection = Connection(Rc::clone(&dropped));
                executor().yield_task_queue_now().await;
                panic!("as asked");
            });
            scope.await;
            Ok(())
        });
    }));
    assert!(panicked.is_err());
    assert_eq!(dropped.get(), 2);
    assert!(Handle::try_current().is_err(), "the context is left");
}

#[test]
fn a_value_that_is_kept_in_the_context_is_dropped_there_on_any_thread() {
    let (drops, seen) = mpsc::channel();
    let tokio = Tokio::start().expect("there are resources");
    let keep = || tokio.keep(Spawner(drops.clone()));
    drop(keep());
    let kept = keep();
    thread::spawn(|| drop(kept)).join().expect("nothing panics");
    let kept = keep();
    LocalExecutor::default().run(async {
        // Dropped by the executor's end.
        spawn_local(async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        })
        .detach();
        executor().yield_task_queue_now().await;
    });
    let seen: Vec<_> = (0..3).map(|_| seen.recv_timeout(PATIENCE)).collect();
    assert_eq!(seen, [Ok(true); 3]);
    assert!(Handle::try_current().is_err(), "the context is left");
}

#[test]
fn a_value_that_is_kept_can_be_used_and_taken_out() {
    let tokio = Tokio::start().expect("there are resources");
    let mut kept = tokio.keep(vec![1]);
    kept.push(2);
    assert_eq!(kept.len(), 2);
    assert_eq!(kept.into_inner(), [1, 2]);
}

/// Its waker is that of a task whose executor is gone.
#[test]
fn a_wake_after_the_end_of_the_executor() {
    let tokio = Tokio::start().expect("there are resources");
    let (sender, receiver) = oneshot::channel::<()>();
    let kept = Rc::new(RefCell::new(None));
    let keep = Rc::clone(&kept);
    LocalExecutor::default().run(async {
        let pending = tokio.with(async move {
            let sleep = Box::pin(tokio::time::sleep(Duration::from_millis(20)));
            let mut both = Box::pin(async move {
                sleep.await;
                let _ = receiver.await;
            });
            assert!(poll_once(both.as_mut()).await.is_none());
            *keep.borrow_mut() = Some(both);
        });
        spawn_local(pending).await;
    });
    // The timer fires, and wakes a task that is no more.
    thread::sleep(Duration::from_millis(60));
    let rest = kept.borrow_mut().take().expect("it was kept");
    drop(sender);
    // Another executor takes it on.
    run(async {
        tokio.with(rest).await;
        Ok(())
    });
}

#[test]
fn an_executor_ends_while_futures_are_pending() {
    for _ in 0..50 {
        LocalExecutor::default().run(async {
            for micros in 0..20 {
                let sleep = async move {
                    tokio::time::sleep(Duration::from_micros(micros * 100)).await;
                };
                spawn_local(with_tokio(sleep)).detach();
            }
            timer::sleep(Duration::from_micros(500)).await;
        });
    }
}

/// Its registration with tokio's driver stays, as the memory does, and is harmless.
#[test]
fn a_forgotten_future() {
    run(async {
        let mut future = Box::pin(with_tokio(sleep_of_tokio(1)));
        assert!(poll_once(future.as_mut()).await.is_none());
        std::mem::forget(future);
        with_tokio(sleep_of_tokio(10)).await;
        Ok(())
    });
}

/// The locals of the thread are destroyed in the order opposite to their first use: tokio's is gone.
#[test]
fn a_future_in_a_local_of_a_thread_that_ends() {
    struct Noted(mpsc::Sender<()>);
    impl Drop for Noted {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    type Kept = Cell<Option<WithTokio<Noted>>>;
    impl Future for Noted {
        type Output = ();
        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<()> {
            std::task::Poll::Pending
        }
    }
    thread_local!(static KEPT: Kept = const { Cell::new(None) });

    let (dropped, is_dropped) = mpsc::channel();
    let ended = thread::spawn(move || {
        KEPT.set(None); // registers its destructor, before tokio's
        KEPT.set(Some(with_tokio(Noted(dropped))));
        with_tokio(async {}).into_context();
    });
    ended.join().expect("nothing panics");
    is_dropped.recv_timeout(PATIENCE).expect("it is dropped");
}

trait IntoContext {
    fn into_context(self);
}

impl<F: Future> IntoContext for WithTokio<F> {
    /// Polls once, so that the thread has a context.
    fn into_context(self) {
        futures_lite::future::block_on(poll_once(self));
    }
}
