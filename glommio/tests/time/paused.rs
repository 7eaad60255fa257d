//! What a paused clock does when all tasks wait.

use glommio::future::timeout;
use glommio::time;
use glommio::timer::{DelayQueue, interval};
use proptest::prelude::*;

use super::{HOUR, SECOND, run_paused};
use crate::common::prelude::*;

#[run_test(run_paused)]
async fn it_moves_to_the_deadline_exactly() {
    let start = time::now();
    for nanos in [1, 999, 1_000_000, 86_400_000_000_001, u64::MAX / 4] {
        let (before, wait) = (time::now(), Duration::from_nanos(nanos));
        sleep(wait).await;
        assert_eq!(time::now() - before, wait);
    }
    assert!(time::now() - start > 100 * 365 * 24 * HOUR);
}

#[run_test(run_paused)]
async fn the_date_goes_by_it() {
    let start = time::system_now();
    for hours in 1..=48 {
        sleep(HOUR).await;
        assert_eq!(time::system_now(), start + hours * HOUR);
    }
    time::resume();
    while time::system_now() == start + 48 * HOUR {
        thread::sleep(Duration::from_millis(1));
    }
}

#[run_test(run_paused)]
async fn it_stands_still_while_anything_runs() {
    let start = time::now();
    let mut sleeping = spawn_local(sleep(Duration::from_nanos(1)));
    for _ in 0..1000 {
        yield_now().await;
    }
    thread::sleep(Duration::from_millis(2));
    yield_now().await;
    assert_eq!(time::now(), start);
    assert!(poll_once(&mut sleeping).await.is_none());
    sleeping.await;
    assert_eq!(time::now() - start, Duration::from_nanos(1));
}

#[glommio::test(start_paused = true)]
async fn the_attribute_pauses_it() {
    let start = time::now();
    sleep(HOUR).await;
    assert_eq!(time::now() - start, HOUR);
}

#[glommio::test(start_paused = false)]
async fn the_attribute_may_leave_it_alone() {
    let (start, real) = (time::now(), Instant::now());
    sleep(Duration::from_millis(1)).await;
    assert!(time::now() - start >= Duration::from_millis(1));
    assert!(real.elapsed() >= Duration::from_millis(1));
}

#[run_test(run_paused)]
async fn limits_and_ticks_go_by_it() {
    let start = time::now();
    let limited = timeout(HOUR, pending::<()>()).await;
    assert!(matches!(limited, Err(GlommioError::TimedOut(limit)) if limit == HOUR));
    assert_eq!(time::now() - start, HOUR);
    assert!(
        timeout(HOUR, sleep(HOUR - Duration::from_nanos(1)))
            .await
            .is_ok()
    );

    let mut ticks = interval(SECOND);
    let first = ticks.tick().await;
    for n in 1..100 {
        assert_eq!(ticks.tick().await, first + n * SECOND);
        assert_eq!(time::now(), first + n * SECOND);
    }
}

#[run_test(run_paused)]
async fn actions_and_expiring_items_go_by_it() {
    let start = time::now();
    let action = TimerActionOnce::do_in(HOUR, async { time::now() });
    assert_eq!(action.join().await, Some(start + HOUR));

    let count = Rc::new(Cell::new(0));
    let repeated = TimerActionRepeat::repeat({
        let count = Rc::clone(&count);
        move || {
            let count = Rc::clone(&count);
            async move {
                count.set(count.get() + 1);
                (count.get() < 10).then_some(SECOND)
            }
        }
    });
    repeated.join().await;
    assert_eq!((count.get(), time::now()), (10, start + HOUR + 9 * SECOND));

    let queue = DelayQueue::new();
    let begin = time::now();
    for hours in [3, 1, 2] {
        queue.insert(hours, hours * HOUR);
    }
    for hours in 1..=3 {
        let expired = queue.next_expired().await;
        assert_eq!(*expired.get_ref(), hours);
        assert_eq!(time::now(), begin + hours * HOUR);
    }
}

#[run_test(run_paused)]
async fn a_timer_that_is_put_off_is_not_reached_before() {
    let start = time::now();
    let mut timer = Timer::new(SECOND);
    assert!(poll_once(&mut timer).await.is_none());
    timer.reset(HOUR);
    assert_eq!(timer.await, start + HOUR);
    assert_eq!(time::now(), start + HOUR);
}

/// The slack is for the delay of wake-ups, of which there is none.
#[run_test]
fn neither_slack_nor_spinning_nor_precision_shows() {
    let builders = [
        LocalExecutorBuilder::default().timer_slack(SECOND),
        LocalExecutorBuilder::default().timer_precision(glommio::TimerPrecision::Tightest),
        LocalExecutorBuilder::new(glommio::Placement::Fixed(0)).spin_before_park(SECOND),
    ];
    for builder in builders {
        let executor = builder
            .start_paused(true)
            .make()
            .expect("this machine has io_uring");
        executor.run(async {
            let start = time::now();
            for n in 1..1000 {
                sleep(SECOND).await;
                assert_eq!(time::now(), start + n * SECOND);
            }
        });
    }
}

#[run_test(run_paused)]
async fn timers_without_an_end_are_never_reached() {
    let start = time::now();
    let (sender, receiver) = glommio::channels::oneshot::shared();
    let mut never = spawn_local(sleep(Duration::MAX));
    let thread = thread::spawn(move || {
        thread::sleep(Duration::from_millis(10));
        sender.send(())
    });
    assert!(receiver.await.is_ok());
    assert!(thread.join().expect("it does not panic").is_ok());
    assert!(poll_once(&mut never).await.is_none());
    // The channel has timers of its own.
    assert!(time::now() - start < SECOND);
    sleep(HOUR).await;
    assert!(poll_once(&mut never).await.is_none());
}

#[run_test]
fn each_executor_has_its_own_which_lasts_between_runs() {
    let paused = LocalExecutorBuilder::default().start_paused(true).make();
    let paused = paused.expect("this machine has io_uring");
    let other = LocalExecutor::default();
    let first = paused.run(async {
        sleep(HOUR).await;
        time::now()
    });
    let outside = Instant::now();
    assert!(time::now() >= outside && time::now() < first);
    assert!(other.run(async { time::now() }) < first);
    assert_eq!(paused.run(async { time::now() }), first);
    panic_of(|| paused.run(async { panic!("as planned") }));
    assert!(time::now() < first);
    assert_eq!(paused.run(async { time::now() }), first);
}

/// Many timers of one moment: more than expire in a turn.
#[run_test(run_paused)]
async fn a_crowd_is_at_one_moment() {
    let deadline = time::now() + HOUR;
    let crowd: Vec<Task<Instant>> = (0..10_000)
        .map(|_| {
            spawn_local(async move {
                Timer::at(deadline).await;
                time::now()
            })
        })
        .collect();
    for task in crowd {
        assert_eq!(task.await, deadline);
    }
}

/// What happens when, as tasks that sleep again and again see it: the time since the start, and
/// which of them it was.
fn events(waits: &[Vec<u64>]) -> Vec<(u64, usize)> {
    let events = Rc::new(RefCell::new(Vec::new()));
    run_paused(async || {
        let start = time::now();
        let tasks: Vec<_> = (waits.iter().cloned().enumerate())
            .map(|(number, waits)| {
                let events = Rc::clone(&events);
                spawn_local(async move {
                    for wait in waits {
                        sleep(Duration::from_nanos(wait)).await;
                        let passed = (time::now() - start).as_nanos();
                        let passed = u64::try_from(passed).expect("it is short");
                        events.borrow_mut().push((passed, number));
                    }
                })
            })
            .collect();
        join_all(tasks).await;
    });
    events.take()
}

/// The same, computed: what is due first happens first, and of what is due together what was armed
/// first.
fn expected(waits: &[Vec<u64>]) -> Vec<(u64, usize)> {
    let mut armed = BTreeSet::new();
    let mut left: Vec<_> = waits.iter().map(|waits| waits.iter()).collect();
    let mut count = 0;
    let mut events = Vec::new();
    let mut arm = |armed: &mut BTreeSet<_>, now: u64, number: usize| {
        if let Some(wait) = left[number].next() {
            count += 1;
            armed.insert((now + wait, count, number));
        }
    };
    (0..waits.len()).for_each(|number| arm(&mut armed, 0, number));
    while let Some((now, _, number)) = armed.pop_first() {
        events.push((now, number));
        arm(&mut armed, now, number);
    }
    events
}

fn wait() -> impl Strategy<Value = u64> {
    prop_oneof![
        1..10_u64,
        1..100_000_u64,
        1..1_000_000_000_u64,
        1..1_000_000_000_000_000_u64
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_happens_in_its_order_and_at_its_time(
        waits in prop::collection::vec(prop::collection::vec(wait(), 0..8), 0..400)
    ) {
        prop_assert_eq!(events(&waits), expected(&waits));
    }
}
