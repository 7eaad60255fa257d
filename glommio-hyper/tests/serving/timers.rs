//! The clock that hyper is given.

use std::time::Instant;

use hyper::rt::{Sleep, Timer};

use super::*;

#[test]
fn a_sleep_is_never_early() {
    run(async {
        let begin = Instant::now();
        GlommioTimer.sleep(Duration::from_millis(3)).await;
        assert!(begin.elapsed() >= Duration::from_millis(3));
        let deadline = Instant::now() + Duration::from_millis(3);
        GlommioTimer.sleep_until(deadline).await;
        assert!(Instant::now() >= deadline);
        GlommioTimer.sleep_until(begin).await;
        Ok(())
    });
}

#[test]
fn a_sleep_is_moved_in_place() {
    run(async {
        let mut sleep = GlommioTimer.sleep(60 * PATIENCE);
        assert!(futures_lite::future::poll_once(&mut sleep).await.is_none());
        let place = std::ptr::from_ref(&*sleep).cast::<()>();
        let deadline = Instant::now() + Duration::from_millis(3);
        GlommioTimer.reset(&mut sleep, deadline);
        assert_eq!(std::ptr::from_ref(&*sleep).cast::<()>(), place);
        let slept = glommio::timer::timeout(PATIENCE, async {
            sleep.await;
            Ok(())
        });
        slept.await?;
        assert!(Instant::now() >= deadline);
        Ok(())
    });
}

/// One of another timer is replaced.
#[test]
fn a_sleep_of_another_timer_is_replaced() {
    struct Never;

    impl Future for Never {
        type Output = ();

        fn poll(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<()> {
            std::task::Poll::Pending
        }
    }

    impl Sleep for Never {}

    run(async {
        let mut sleep: std::pin::Pin<Box<dyn Sleep>> = Box::pin(Never);
        GlommioTimer.reset(&mut sleep, Instant::now() + Duration::from_millis(1));
        sleep.await;
        Ok(())
    });
}
