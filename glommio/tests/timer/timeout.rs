//! Limits on how long a future may take.

use std::error::Error;

use glommio::Result;
use glommio::timer::timeout;

use crate::common::prelude::*;
use crate::harness::{HOUR, OnDrop, limit_of, ms};

#[run_test]
async fn a_result_in_time_passes_through() {
    assert_eq!(timeout(HOUR, ready(Ok(1))).await.ok(), Some(1));
    let slow = async {
        sleep(ms(2)).await;
        Ok("slow")
    };
    assert_eq!(timeout(HOUR, slow).await.ok(), Some("slow"));
}

#[run_test]
async fn errors_pass_through_unchanged() {
    let broken = async { Err::<(), _>(io::Error::from_raw_os_error(libc::EPIPE).into()) };
    let error = timeout(HOUR, broken).await.expect_err("it is broken");
    assert!(matches!(error, GlommioError::IoError(_)));
    assert_eq!(error.raw_os_error(), Some(libc::EPIPE));

    let closed = async { Err::<(), _>(GlommioError::Closed(ResourceType::Gate)) };
    let error = timeout(Duration::ZERO, closed)
        .await
        .expect_err("it is closed");
    assert!(matches!(error, GlommioError::Closed(ResourceType::Gate)));
}

#[run_test]
async fn it_counts_from_the_first_poll() {
    let limited = timeout(ms(20), pending::<Result<(), ()>>());
    Timer::new(ms(30)).await;
    let polled_at = Instant::now();
    assert!(limited.await.is_err());
    assert!(polled_at.elapsed() >= ms(20));
}

#[run_test]
async fn the_tighter_of_two_limits_holds() {
    let inner_is_tighter = timeout(HOUR, timeout(ms(2), pending::<Result<(), ()>>()));
    assert_eq!(limit_of(inner_is_tighter.await), Some(ms(2)));
    let outer_is_tighter = timeout(ms(2), timeout(HOUR, pending::<Result<(), ()>>()));
    assert_eq!(limit_of(outer_is_tighter.await), Some(ms(2)));
    // The inner one is looked at first.
    let equal = timeout(
        Duration::ZERO,
        timeout(Duration::ZERO, async { pending::<Result<(), ()>>().await }),
    );
    assert_eq!(limit_of(equal.await), Some(Duration::ZERO));
    let recovered = timeout(HOUR, async {
        match timeout(ms(1), pending::<Result<u8, ()>>()).await {
            Err(GlommioError::TimedOut(_)) => Ok(7),
            other => other,
        }
    });
    assert_eq!(recovered.await.ok(), Some(7));
}

#[run_test]
async fn the_future_is_gone_when_the_error_is_seen() {
    let log = Log::default();
    let guard = OnDrop(log.clone(), "future");
    let result = timeout(ms(1), async move {
        sleep(HOUR).await;
        drop(guard);
        Ok(())
    })
    .await;
    log.push("caller");
    assert!(result.is_err());
    assert_eq!(log.entries(), ["future", "caller"]);
}

#[run_test]
async fn given_up_it_drops_the_future_and_fires_no_more() {
    let log = Log::default();
    let guard = OnDrop(log.clone(), "future");
    let limited = timeout(ms(5), async move {
        sleep(HOUR).await;
        drop(guard);
        Ok("inner")
    });
    let won = or(limited, async {
        executor().yield_now().await;
        Ok("other")
    });
    // A slow machine may see the limit first.
    let result = won.await;
    assert!(matches!(
        result,
        Ok("other") | Err(GlommioError::TimedOut(_))
    ));
    assert_eq!(log.entries(), ["future"]);
    sleep(ms(8)).await;
    assert_eq!(log.len(), 1);
}

/// A wake of the inner future and the timer do not get into each other's way.
#[run_test]
async fn an_inner_future_that_is_woken_all_the_time() {
    let busy = async {
        loop {
            executor().yield_now().await;
        }
    };
    let before = Instant::now();
    let result: Result<(), ()> = timeout(ms(10), busy).await;
    assert_eq!(limit_of(result), Some(ms(10)));
    assert!(before.elapsed() >= ms(10));
}

/// Programs match these.
#[run_test]
async fn the_error_in_words() {
    let error = timeout(ms(10), pending::<Result<(), ()>>())
        .await
        .expect_err("nothing is that fast");
    assert_eq!(error.to_string(), "Operation timed out after 10ms");
    assert_eq!(format!("{error:?}"), "TimedOut { dur 10ms }");
    assert!(error.source().is_none() && error.raw_os_error().is_none());
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(
        error.to_string().ends_with("timed out after 10ms"),
        "{error}"
    );
}
