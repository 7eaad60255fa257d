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

#[run_test(run_unpreempted)]
async fn a_timer_without_any_time_left_is_done_at_its_first_poll() {
    for _ in 0..3 {
        hog(LONG);
        assert!(poll_once(Timer::new(Duration::ZERO)).await.is_some());
        assert!(poll_once(sleep(Duration::ZERO)).await.is_some());
        let start = Instant::now();
        hog(LONG);
        assert!(poll_once(Timer::at(start + LONG)).await.is_some());
        let mut timer = Timer::new(HOUR);
        hog(LONG);
        timer.reset(Duration::ZERO);
        assert!(poll_once(timer).await.is_some());
        let mut timer = Timer::at(Instant::now() + HOUR);
        hog(LONG);
        timer.reset_at(Instant::now());
        assert!(poll_once(timer).await.is_some());
    }
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
        hog(LONG);
        let done = Rc::new(Cell::new(false));
        let _action = begin(Rc::clone(&done));
        executor().yield_task_queue_now().await;
        assert!(done.get(), "the action numbered {number}");
    }
}
