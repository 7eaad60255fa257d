//! What is due at once, in a round of tasks that has lasted for longer than rounds should.

use glommio::timer::timeout;

use crate::common::prelude::*;
use crate::harness::{HOUR, hog, ms, run_unpreempted};

const LONG: Duration = ms(20);

#[run_test(run_unpreempted)]
async fn a_future_without_any_time_is_polled_once() {
    hog(LONG);
    let polls = Cell::new(0);
    let at_the_second_poll = poll_fn(|cx| {
        polls.set(polls.get() + 1);
        cx.waker().wake_by_ref();
        match polls.get() {
            1 => Poll::Pending,
            _ => Poll::Ready(Ok(())),
        }
    });
    let result = timeout(Duration::ZERO, at_the_second_poll).await;
    assert!(matches!(
        result,
        Err(GlommioError::TimedOut(Duration::ZERO))
    ));
    assert_eq!(polls.get(), 1);
}

/// What `begin` returns in a long round. No round is taken to last for a second, but the machine may
/// stand still in it: again then.
async fn in_a_long_round(begin: impl AsyncFn() -> bool) -> bool {
    loop {
        executor().yield_task_queue_now().await;
        let round = Instant::now();
        hog(LONG);
        let is_done = begin().await;
        if is_done || round.elapsed() < ms(500) {
            return is_done;
        }
    }
}

#[run_test(run_unpreempted)]
async fn a_timer_without_any_time_left_is_done_at_its_first_poll() {
    let begin: [fn() -> Timer; 4] = [
        || Timer::new(Duration::ZERO),
        || {
            let start = Instant::now();
            hog(LONG);
            Timer::at(start + LONG)
        },
        || {
            let mut timer = Timer::new(HOUR);
            hog(LONG);
            timer.reset(Duration::ZERO);
            timer
        },
        || {
            let mut timer = Timer::at(Instant::now() + HOUR);
            hog(LONG);
            timer.reset_at(Instant::now());
            timer
        },
    ];
    for (number, begin) in begin.into_iter().enumerate() {
        let is_done = in_a_long_round(async || poll_once(begin()).await.is_some());
        assert!(is_done.await, "the timer numbered {number}");
    }
    let is_slept = async || poll_once(sleep(Duration::ZERO)).await.is_some();
    assert!(in_a_long_round(is_slept).await);
}

#[run_test(run_unpreempted)]
async fn an_action_for_now_is_done_after_one_turn_of_its_queue() {
    type Begin = fn(Rc<Cell<bool>>) -> TimerActionOnce<bool>;
    let begin: [Begin; 4] = [
        |done| TimerActionOnce::do_at(Instant::now(), async move { done.replace(true) }),
        |done| TimerActionOnce::do_in(Duration::ZERO, async move { done.replace(true) }),
        |done| {
            let action = TimerActionOnce::do_in(HOUR, async move { done.replace(true) });
            hog(LONG);
            action.rearm_at(Instant::now());
            action
        },
        |done| {
            let action = TimerActionOnce::do_in(HOUR, async move { done.replace(true) });
            hog(LONG);
            action.rearm_in(Duration::ZERO);
            action
        },
    ];
    for (number, begin) in begin.into_iter().enumerate() {
        let is_done = in_a_long_round(async || {
            let done = Rc::new(Cell::new(false));
            let _action = begin(Rc::clone(&done));
            executor().yield_task_queue_now().await;
            done.get()
        });
        assert!(is_done.await, "the action numbered {number}");
    }
}
