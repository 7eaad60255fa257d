//! Panics of futures, of their destructors, and of wakers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use glommio::{LocalExecutor, spawn_local};
use glommio_tokio::{Tokio, with_tokio};
use tokio::runtime::Handle;

use crate::{PATIENCE, run, sleep_of_tokio};

#[test]
fn a_panic_goes_on_to_the_task_and_leaves_the_context() {
    let panicked = catch_unwind(|| {
        LocalExecutor::default().run(async {
            spawn_local(with_tokio(async {
                tokio::time::sleep(Duration::from_millis(1)).await;
                panic!("as asked");
            }))
            .await;
        });
    });
    let payload = panicked.expect_err("a panic of a task ends `run`");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"as asked"));
    assert!(Handle::try_current().is_err(), "the context is left");
    run(async {
        with_tokio(sleep_of_tokio(1)).await;
        Ok(())
    });
}

#[test]
fn a_panic_of_a_destructor_leaves_the_context() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("as asked");
        }
    }
    let bomb = Bomb;
    let future = with_tokio(async move { drop(bomb) });
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(future)));
    assert!(panicked.is_err());
    assert!(Handle::try_current().is_err(), "the context is left");
}

#[test]
fn a_panic_of_a_spawned_task_is_its_own() {
    run(async {
        let tokio = Tokio::start()?;
        let task = tokio.handle().spawn(async { panic!("as asked") });
        assert!(task.await.expect_err("it has panicked").is_panic());
        tokio.with(tokio::task::yield_now()).await;
        assert_eq!(tokio.handle().spawn(async { 1 }).await?, 1);
        Ok(())
    });
}

/// A guard of another context that is kept over an `.await` would stay when ours is left.
#[test]
fn a_context_that_is_not_left_in_order_is_refused() {
    let panicked = catch_unwind(|| {
        run(async {
            let other = Tokio::start()?;
            with_tokio(async move {
                let _entered = other.handle().enter();
                glommio::executor().yield_task_queue_now().await;
            })
            .await;
            Ok(())
        });
    });
    let payload = panicked.expect_err("tokio checks the order");
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    assert!(
        text.is_some_and(|it| it.contains("out of order")),
        "{text:?}"
    );
}

/// It is woken on the background thread, which cannot go on. The others do not wait for ever.
#[test]
fn a_waker_that_panics_there_ends_the_process() {
    const IS_CHILD: &str = "GLOMMIO_TOKIO_PANICKING_WAKER";
    struct Panicking;
    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("as asked");
        }
    }
    if std::env::var_os(IS_CHILD).is_some() {
        let tokio = Tokio::start().expect("there are resources");
        let waker = Waker::from(Arc::new(Panicking));
        let mut sleep = Box::pin(tokio.with(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }));
        let poll = sleep.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
        std::thread::sleep(PATIENCE);
        return;
    }
    let test = "panics::a_waker_that_panics_there_ends_the_process";
    let child = Command::new(std::env::current_exe().expect("it runs"))
        .args([test, "--exact", "--nocapture"])
        .env(IS_CHILD, "1")
        .output()
        .expect("the test starts itself");
    let text = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{text}");
    assert!(text.contains("the process ends"), "{text}");
}
