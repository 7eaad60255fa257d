use glommio::sync::RwLock;

use crate::common::prelude::*;

fn would_block<T>(result: Result<T, GlommioError<()>>) -> bool {
    matches!(result, Err(GlommioError::WouldBlock(ResourceType::RwLock)))
}

#[test]
fn a_held_lock_is_not_closed() {
    let lock = RwLock::new(());
    for guard in [Ok(lock.try_read().unwrap()), Err(())] {
        let _guard = guard.map_err(|()| lock.try_write());
        let refused = lock.close();
        assert!(matches!(
            refused,
            Err(GlommioError::CanNotBeClosed(
                ResourceType::RwLock,
                "Lock is still held by fiber(s)"
            ))
        ));
        assert!(!lock.is_closed());
    }
    lock.close().unwrap();
    lock.close().expect("once more is no error");
}

#[test]
fn an_admitted_reader_that_is_dropped_after_the_end_does_no_harm() {
    let lock = RwLock::new(());
    let guard = lock.try_write().unwrap();
    let readers = [(); 2].map(|()| Polled::waiting(lock.read()));
    drop(guard);
    lock.close().unwrap();
    drop(readers);
    lock.close().unwrap();
}

#[test]
fn a_forgotten_guard_does_not_panic_when_the_lock_is_dropped() {
    let dropped = DropCount::default();
    let mut read = RwLock::new(dropped.guard());
    std::mem::forget(read.try_read().unwrap());
    assert!(would_block(read.try_write()));
    read.get_mut().unwrap();
    drop(read);
    let written = RwLock::new(dropped.guard());
    std::mem::forget(written.try_write().unwrap());
    assert!(would_block(written.try_read()));
    drop(written);
    assert_eq!(dropped.count(), 2);
}

/// The value is not lent while its `Debug` runs, which may want to lock.
#[test]
fn printing_is_free_of_side_effects() {
    struct Nosy(Rc<RwLock<Option<Nosy>>>, Rc<Cell<bool>>);
    impl std::fmt::Debug for Nosy {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.1.set(would_block(self.0.try_write()));
            f.write_str("nosy")
        }
    }
    let lock = Rc::new(RwLock::new(None));
    let was_refused = Rc::new(Cell::new(false));
    *lock.try_write().unwrap() = Some(Nosy(Rc::clone(&lock), Rc::clone(&was_refused)));
    assert!(format!("{lock:?}").contains("nosy"));
    assert!(was_refused.get());
    let nosy = lock
        .try_write()
        .expect("printing leaves it unlocked")
        .take();
    drop(nosy);
    assert_eq!(RwLock::<u8>::default().into_inner().unwrap(), 0);
}
