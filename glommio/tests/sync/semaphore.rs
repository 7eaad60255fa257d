use glommio::sync::{RwLock, Semaphore};

use crate::common::polled::keeps_one_waker;
use crate::common::prelude::*;

fn is_closed<T>(result: Result<T, GlommioError<()>>, requested: u64, available: u64) -> bool {
    matches!(
        result,
        Err(GlommioError::Closed(ResourceType::Semaphore { requested: r, available: a }))
            if (r, a) == (requested, available)
    )
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
fn a_static_permit_gives_its_units_back() {
    let semaphore = Rc::new(Semaphore::new(3));
    let permit = semaphore.try_acquire_static_permit(2).unwrap();
    assert_eq!(semaphore.available(), 1);
    drop(permit);
    assert_eq!(semaphore.available(), 3);
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
fn a_wait_that_is_polled_often_keeps_one_waker() {
    keeps_one_waker(Semaphore::new(0).acquire(1));
    let lock = RwLock::new(());
    let _guard = lock.try_write().unwrap();
    keeps_one_waker(lock.read());
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
