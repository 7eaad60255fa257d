//! Loops that would keep the thread for ever end with their time limits.

use glommio::future::timeout;
use glommio::net::lookup_host;
use glommio::timer::sleep_until;

use super::*;

/// A future that is polled before its time limit takes all that the poll may do. The limit has its
/// turn all the same, also if its time was over before it was polled first.
#[run_test]
async fn a_time_limit_that_is_over_before_its_first_poll_ends_the_first_poll() {
    let polls = Cell::new(0);
    let mut endless = pin!(async {
        loop {
            consume_budget().await;
        }
    });
    let counted = poll_fn(|cx| {
        polls.update(|it| it + 1);
        endless.as_mut().poll(cx)
    });
    executor().yield_now().await;
    let limited: Result<(), _> = timeout(Duration::ZERO, counted).await;
    assert!(
        limited.is_err() && polls.get() == 1,
        "{} polls",
        polls.get()
    );
}

/// A sleep beside it was not polled before its deadline, or was refused: it ends the other.
#[run_test]
async fn a_sleep_that_is_refused_is_over_with_the_next_turn() {
    let endless = async {
        loop {
            consume_budget().await;
        }
    };
    begin_spent_slice().await;
    or(endless, sleep_until(past())).await;
}

/// One future of a `select` over thousands, which polls them all in each of its polls.
#[run_test]
async fn two_busy_futures_among_thousands_let_a_timer_run() {
    let ticks = Rc::new(Cell::new(0));
    let ticking = spawn_local({
        let ticks = ticks.clone();
        async move {
            while ticks.get() < 3 {
                sleep(Duration::from_millis(1)).await;
                ticks.update(|it| it + 1);
            }
        }
    });
    let (_sender, receiver) = local_channel::new_unbounded::<()>();
    let mut waiting: Vec<_> = (0..10_000).map(|_| Box::pin(receiver.recv())).collect();
    let busy = || async {
        loop {
            consume_budget().await;
        }
    };
    let mut busy: [_; 2] = std::array::from_fn(|_| Box::pin(busy()));
    let select = poll_fn(|cx| {
        let [first, last] = &mut busy;
        let _: Poll<()> = first.as_mut().poll(cx);
        for future in &mut waiting {
            assert!(future.as_mut().poll(cx).is_pending());
        }
        let _: Poll<()> = last.as_mut().poll(cx);
        if ticks.get() < 3 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    });
    zip(select, ticking).await;
}

/// As with a sleep: it does not matter which of the two is polled first.
#[run_test]
async fn a_task_beside_a_future_that_takes_all_there_is_ends_it() {
    let endless = || async {
        loop {
            consume_budget().await;
        }
    };
    or(endless(), spawn_local(async {})).await;
    or(endless(), spawn_local(sleep(Duration::from_millis(1)))).await;
    let call = async { drop(lookup_host("127.0.0.1:80").await) };
    or(endless(), call).await;
}
