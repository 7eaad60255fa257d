use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

use glommio::sync::Semaphore;
use glommio::{GlommioError, ResourceType, spawn_local};

use crate::common::hooks::counting;
use crate::common::polled::{Polled, at_once, quiet_panic};
use crate::common::{Kept, Log, run};

fn is_closed<T>(result: Result<T, GlommioError<()>>, requested: u64, available: u64) -> bool {
    matches!(
        result,
        Err(GlommioError::Closed(ResourceType::Semaphore { requested: r, available: a }))
            if (r, a) == (requested, available)
    )
}

#[test]
fn waiters_run_in_the_order_in_which_they_came() {
    run(async {
        let (semaphore, log) = (Rc::new(Semaphore::new(0)), Log::default());
        let waiters = [1, 2, 3].map(|id| {
            let (semaphore, log) = (Rc::clone(&semaphore), log.clone());
            spawn_local(async move {
                semaphore.acquire(1).await.unwrap();
                log.note(id.to_string());
                semaphore.signal(1);
            })
        });
        semaphore.signal(1);
        for waiter in waiters {
            waiter.await;
        }
        assert_eq!(log.take(), ["1", "2", "3"]);
    });
}

#[test]
fn a_cancelled_waiter_that_was_served_serves_the_next() {
    let semaphore = Semaphore::new(0);
    let first = Polled::waiting(semaphore.acquire(1));
    let mut second = Polled::waiting(semaphore.acquire(1));
    semaphore.signal(1);
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    second.finish().unwrap();
    assert_eq!(semaphore.available(), 0);
}

#[test]
fn a_cancelled_waiter_that_was_served_last_gives_its_units_back() {
    let semaphore = Semaphore::new(0);
    let waiter = Polled::waiting(semaphore.acquire(3));
    semaphore.signal(3);
    assert_eq!(semaphore.available(), 0, "the units are the waiter's");
    drop(waiter);
    assert_eq!(semaphore.available(), 3);
}

#[test]
fn large_requests_are_not_starved_by_small_ones() {
    let semaphore = Semaphore::new(1);
    let mut large = Polled::waiting(semaphore.acquire(3));
    let mut small = Polled::waiting(semaphore.acquire(1));
    semaphore.signal(1);
    assert!(!small.is_woken(), "it would overtake");
    semaphore.signal(2);
    large.finish().unwrap();
    small.finish().unwrap();
}

#[test]
fn a_newcomer_does_not_overtake() {
    let semaphore = Semaphore::new(2);
    let mut large = Polled::waiting(semaphore.acquire(3));
    let mut newcomer = Polled::waiting(semaphore.acquire(1));
    assert!(!semaphore.try_acquire(1).unwrap());
    assert!(!semaphore.try_acquire(0).unwrap());
    let refused = semaphore.try_acquire_permit(1);
    assert!(matches!(
        refused,
        Err(GlommioError::WouldBlock(ResourceType::Semaphore {
            requested: 1,
            available: 2
        }))
    ));
    semaphore.signal(1);
    large.finish().unwrap();
    assert!(newcomer.poll().is_pending());
}

#[test]
fn a_large_request_that_gives_up_lets_those_behind_it_pass() {
    let semaphore = Semaphore::new(2);
    let large = Polled::waiting(semaphore.acquire(3));
    let mut behind = [1, 1, 1].map(|units| Polled::waiting(semaphore.acquire(units)));
    drop(large);
    behind[0].finish().unwrap();
    behind[1].finish().unwrap();
    assert!(!behind[2].is_woken());
}

#[test]
fn nothing_is_taken_at_once_also_beside_waiters() {
    let semaphore = Semaphore::new(0);
    let _waiter = Polled::waiting(semaphore.acquire(1));
    at_once(semaphore.acquire(0)).unwrap();
    semaphore.close();
    assert!(is_closed(at_once(semaphore.acquire(0)), 0, 0));
    assert!(is_closed(semaphore.try_acquire(0), 0, 0));
}

#[test]
fn permits_give_their_units_back() {
    let semaphore = Rc::new(Semaphore::new(5));
    let borrowed = at_once(semaphore.acquire_permit(1)).unwrap();
    let owned = at_once(semaphore.acquire_static_permit(1)).unwrap();
    let tried = semaphore.try_acquire_permit(1).unwrap();
    let tried_owned = semaphore.try_acquire_static_permit(1).unwrap();
    assert!(semaphore.try_acquire(1).unwrap());
    assert_eq!(semaphore.available(), 0);
    drop((borrowed, owned, tried, tried_owned));
    assert_eq!(semaphore.available(), 4, "one was taken without a permit");
}

#[test]
fn a_static_permit_keeps_the_semaphore_alive() {
    let semaphore = Rc::new(Semaphore::new(1));
    let weak = Rc::downgrade(&semaphore);
    let permit = semaphore.try_acquire_static_permit(1).unwrap();
    drop(semaphore);
    permit.close();
    assert!(weak.upgrade().unwrap().is_closed());
    drop(permit);
    assert!(weak.upgrade().is_none());
}

#[test]
fn a_permit_that_panics_gives_its_units_back() {
    let semaphore = Semaphore::new(1);
    crate::common::panic_of(|| {
        let _permit = semaphore.try_acquire_permit(1).unwrap();
        quiet_panic();
    });
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn closing_wakes_all_and_keeps_the_units() {
    let semaphore = Semaphore::new(1);
    let permit = semaphore.try_acquire_permit(1).unwrap();
    let mut waiters = [1, 2, 3].map(|units| Polled::waiting(semaphore.acquire(units)));
    semaphore.close();
    semaphore.close();
    assert!(semaphore.is_closed());
    for (waiter, units) in waiters.iter_mut().zip(1..) {
        assert!(is_closed(waiter.finish(), units, 0));
    }
    drop(permit);
    semaphore.signal(2);
    assert_eq!(semaphore.available(), 3);
    assert!(is_closed(semaphore.try_acquire(1), 1, 3));
    let refused = semaphore.try_acquire_permit(1).map(drop);
    assert!(is_closed(refused, 1, 3));
    assert!(is_closed(at_once(semaphore.acquire(1)), 1, 3));
}

#[test]
fn a_waiter_that_was_served_before_the_end_sees_the_end() {
    let semaphore = Semaphore::new(0);
    let mut polled = Polled::waiting(semaphore.acquire(1));
    let dropped = Polled::waiting(semaphore.acquire(1));
    semaphore.signal(2);
    semaphore.close();
    assert!(is_closed(polled.finish(), 1, 1));
    drop(dropped);
    assert_eq!(semaphore.available(), 2, "both units came back");
}

#[test]
fn too_many_units_are_no_overflow() {
    let semaphore = Semaphore::new(u64::MAX);
    semaphore.signal(1);
    assert_eq!(semaphore.available(), u64::MAX);
    let mut waiter = Polled::waiting({
        assert!(semaphore.try_acquire(1).unwrap());
        semaphore.acquire(u64::MAX)
    });
    semaphore.signal(u64::MAX);
    waiter.finish().unwrap();
    assert_eq!(semaphore.available(), 0);
}

#[test]
fn repeated_polls_pile_up_no_wakers() {
    let semaphore = Semaphore::new(0);
    let kept = Arc::new(Kept);
    let waker = Waker::from(Arc::clone(&kept));
    let mut waiter = Box::pin(semaphore.acquire(1));
    for _ in 0..10_000 {
        let mut cx = Context::from_waker(&waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(Arc::strong_count(&kept), 3, "ours, the task's, the queue's");
    drop(waiter);
    assert_eq!(Arc::strong_count(&kept), 2, "dropped with the future");
}

#[test]
fn the_latest_waker_is_woken() {
    let semaphore = Semaphore::new(0);
    let mut waiter = Box::pin(semaphore.acquire(1));
    let [(_, first), (_, last)] = [counting(), counting()].map(|(waker, count)| {
        let mut cx = Context::from_waker(&waker);
        assert!(waiter.as_mut().poll(&mut cx).is_pending());
        (waker, count)
    });
    semaphore.signal(1);
    assert_eq!((first.get(), last.get()), (0, 1));
}

#[test]
fn wakers_may_use_the_semaphore_and_panic() {
    let semaphore = Rc::new(Semaphore::new(0));
    let hooked = |hook: fn(&Rc<Semaphore>)| {
        let (inner, outer) = (Rc::clone(&semaphore), Rc::clone(&semaphore));
        let waiter = async move { inner.acquire(1).await };
        let mut waiter = Polled::hooked(waiter, move || hook(&outer));
        assert!(waiter.poll().is_pending());
        waiter
    };
    let mut waiters = [
        hooked(|semaphore| semaphore.signal(1)),
        hooked(|_| quiet_panic()),
        hooked(|semaphore| {
            assert!(!semaphore.try_acquire(1).unwrap());
            let _ = semaphore.available();
        }),
        hooked(|semaphore| semaphore.close()),
        hooked(|_| ()),
    ];
    semaphore.signal(3);
    for waiter in &mut waiters[..3] {
        assert!(waiter.is_woken());
    }
    assert!(
        waiters[3].is_woken(),
        "by the unit that the first one added"
    );
    assert!(
        is_closed(waiters[4].finish(), 1, 0),
        "by the end that it made"
    );
    assert!(is_closed(waiters[0].finish(), 1, 1));
}
