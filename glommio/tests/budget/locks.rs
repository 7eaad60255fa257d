use std::convert::Infallible;

use glommio::sync::{CancellationToken, Gate, Mutex, OnceCell, RwLock, Semaphore};

use super::*;

#[run_test]
async fn locks_that_are_free() {
    let semaphore = Rc::new(Semaphore::new(1));
    counts!("Semaphore::acquire", semaphore.acquire(0).await.unwrap());
    counts!(
        "Semaphore::acquire_permit",
        drop(semaphore.acquire_permit(1).await.unwrap())
    );
    counts!(
        "Semaphore::acquire_static_permit",
        drop(semaphore.acquire_static_permit(1).await.unwrap())
    );
    let mutex = Mutex::new(());
    counts!("Mutex::lock", drop(mutex.lock().await.unwrap()));
    let lock = RwLock::new(());
    counts!("RwLock::read", drop(lock.read().await.unwrap()));
    counts!("RwLock::write", drop(lock.write().await.unwrap()));
}

#[run_test]
async fn locks_that_are_closed() {
    let semaphore = Rc::new(Semaphore::new(1));
    semaphore.close();
    counts!(
        "Semaphore::acquire, closed",
        semaphore.acquire(1).await.unwrap_err()
    );
    let lock = RwLock::new(());
    lock.close().unwrap();
    counts!("RwLock::read, closed", assert!(lock.read().await.is_err()));
    let gate = Gate::new();
    gate.close().await.unwrap();
    counts!("Gate::close", drop(gate.close().await.unwrap_err()));
}

#[run_test]
async fn what_has_happened() {
    let cell = OnceCell::new();
    cell.set(7).unwrap();
    counts!(
        "OnceCell::get_or_init",
        assert_eq!(*cell.get_or_init(async || 8).await, 7)
    );
    counts!("OnceCell::get_or_try_init", {
        let init = async || Ok::<_, Infallible>(8);
        assert_eq!(cell.get_or_try_init(init).await, Ok(&7));
    });
    let token = CancellationToken::new();
    token.cancel();
    counts!("Cancelled", token.cancelled().await);
}
