use glommio::sync::{Mutex, RwLock, Semaphore};

use crate::common::prelude::*;

#[test]
fn it_is_not_reentrant_and_says_so() {
    let mutex = Mutex::new(1);
    let guard = mutex.try_lock().unwrap();
    assert!(matches!(
        mutex.try_lock().map(drop),
        Err(GlommioError::WouldBlock(ResourceType::Semaphore {
            requested: 1,
            available: 0
        }))
    ));
    let mut second = Polled::waiting(mutex.lock());
    drop(guard);
    assert_eq!(*second.finish().unwrap(), 1);
}

#[test]
fn the_holder_keeps_its_guard_when_the_lock_is_closed() {
    let mut mutex = Mutex::new(1);
    let mut guard = at_once(mutex.lock()).unwrap();
    let mut waiter = Polled::waiting(mutex.lock());
    mutex.close();
    assert!(mutex.is_closed());
    assert!(matches!(
        waiter.finish().map(drop),
        Err(GlommioError::Closed(_))
    ));
    *guard += 1;
    drop(guard);
    assert!(matches!(
        mutex.try_lock().map(drop),
        Err(GlommioError::Closed(_))
    ));
    assert!(matches!(
        at_once(mutex.lock()).map(drop),
        Err(GlommioError::Closed(_))
    ));
    drop(waiter);
    assert_eq!(*mutex.get_mut().unwrap(), 2);
    assert_eq!(mutex.into_inner().unwrap(), 2);
}

#[test]
fn a_panic_of_the_holder_unlocks() {
    let (mutex, lock, semaphore) = (Mutex::new(1), RwLock::new(()), Semaphore::new(1));
    panic_of(|| {
        let mut guard = mutex.try_lock().unwrap();
        *guard = 2;
        let _guard = lock.try_write().unwrap();
        let _permit = semaphore.try_acquire_permit(1).unwrap();
        quiet_panic();
    });
    assert_eq!(*mutex.try_lock().unwrap(), 2);
    drop(lock.try_write().unwrap());
    assert_eq!(semaphore.available(), 1);
}

#[test]
fn a_forgotten_guard_leaves_the_lock_locked() {
    let mutex = Mutex::new(1);
    std::mem::forget(mutex.try_lock().unwrap());
    assert!(mutex.try_lock().is_err());
    assert_eq!(mutex.into_inner().unwrap(), 1);
}

#[test]
fn it_prints_its_value_unless_that_is_locked() {
    let mutex = Mutex::new("value");
    assert!(format!("{mutex:?}").contains("value\""));
    let guard = mutex.try_lock().unwrap();
    assert!(format!("{mutex:?}").contains("<locked"));
    assert!(format!("{guard:?}").contains("value"));
    drop(guard);
    assert!(mutex.try_lock().is_ok(), "printing leaves it unlocked");
    assert_eq!(Mutex::<u8>::default().into_inner().unwrap(), 0);
}
