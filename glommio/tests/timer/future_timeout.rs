//! Limits on how long any future may take: `future::timeout` and `future::timeout_at`.

use glommio::Result;
use glommio::future::{timeout, timeout_at};
use glommio::timer::try_timeout;

use crate::common::prelude::*;
use crate::harness::{HOUR, limit_of, ms};

#[run_test]
async fn any_output_in_time_passes_through() {
    assert_eq!(timeout(HOUR, ready("any")).await.ok(), Some("any"));
    let failed: std::result::Result<(), u8> = Err(7);
    assert_eq!(timeout(HOUR, ready(failed)).await.ok(), Some(Err(7)));
    let deadline = Instant::now() + HOUR;
    let slow = async {
        sleep(ms(2)).await;
        "slow"
    };
    assert_eq!(timeout_at(deadline, slow).await.ok(), Some("slow"));
    assert_eq!(try_timeout(HOUR, ready(Ok(1))).await.ok(), Some(1));
}

#[run_test]
async fn what_takes_longer_times_out_and_never_early() {
    for limit in [Duration::ZERO, Duration::from_micros(1), ms(1), ms(20)] {
        let before = Instant::now();
        assert_eq!(limit_of(timeout(limit, pending::<()>()).await), Some(limit));
        assert!(before.elapsed() >= limit);
        let deadline = Instant::now() + limit;
        let passed = limit_of(timeout_at(deadline, pending::<()>()).await);
        assert!(Instant::now() >= deadline);
        assert!(passed.is_some_and(|passed| passed <= limit));
    }
}

#[run_test]
async fn a_deadline_that_is_past_is_one_poll() {
    let polls = Rc::new(Cell::new(0));
    let counted = Rc::clone(&polls);
    let never = poll_fn(move |_| {
        counted.update(|it| it + 1);
        Poll::<()>::Pending
    });
    let limited = timeout_at(Instant::now(), never);
    assert_eq!(limit_of(limited.await), Some(Duration::ZERO));
    assert_eq!(polls.get(), 1);
    assert_eq!(timeout_at(Instant::now(), ready(2)).await.ok(), Some(2));
    assert_eq!(timeout(Duration::ZERO, ready(2)).await.ok(), Some(2));
}

/// Nothing but the timer wakes it, and it is done at that very poll.
#[run_test]
async fn at_the_deadline_the_output_wins() {
    let second_poll = || {
        let mut polls = 0;
        poll_fn(move |_| {
            polls += 1;
            if polls == 1 {
                Poll::Pending
            } else {
                Poll::Ready("output")
            }
        })
    };
    assert_eq!(timeout(ms(5), second_poll()).await.ok(), Some("output"));
    let deadline = Instant::now() + ms(5);
    assert_eq!(
        timeout_at(deadline, second_poll()).await.ok(),
        Some("output")
    );
}

/// As an `async fn` would be, in which a parameter is there once more when it is awaited.
#[test]
fn a_limit_does_not_double_the_size_of_a_future() {
    async fn large() -> Result<(), ()> {
        let kept = [1_u8; 4096];
        sleep(HOUR).await;
        assert_eq!(kept, [1; 4096]);
        Ok(())
    }
    let most = size_of_val(&large()) + 256;
    assert!(size_of_val(&try_timeout(HOUR, large())) < most);
    assert!(size_of_val(&timeout(HOUR, large())) < most);
    assert!(size_of_val(&timeout_at(Instant::now(), large())) < most);
}
