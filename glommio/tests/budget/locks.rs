use std::convert::Infallible;
use std::rc::Rc;

use glommio::sync::{CancellationToken, Gate, Mutex, OnceCell, RwLock, Semaphore};

use super::*;

#[test]
fn locks_that_are_free() {
    run(async {
        let semaphore = Rc::new(Semaphore::new(1));
        counts("Semaphore::acquire", async || {
            semaphore.acquire(0).await.unwrap();
        })
        .await;
        counts("Semaphore::acquire_permit", async || {
            drop(semaphore.acquire_permit(1).await.unwrap());
        })
        .await;
        counts("Semaphore::acquire_static_permit", async || {
            drop(semaphore.acquire_static_permit(1).await.unwrap());
        })
        .await;
        let mutex = Mutex::new(());
        counts("Mutex::lock", async || drop(mutex.lock().await.unwrap())).await;
        let lock = RwLock::new(());
        counts("RwLock::read", async || drop(lock.read().await.unwrap())).await;
        counts("RwLock::write", async || drop(lock.write().await.unwrap())).await;
    });
}

#[test]
fn locks_that_are_closed() {
    run(async {
        let semaphore = Rc::new(Semaphore::new(1));
        semaphore.close();
        counts("Semaphore::acquire, closed", async || {
            semaphore.acquire(1).await.unwrap_err();
        })
        .await;
        let lock = RwLock::new(());
        lock.close().unwrap();
        counts("RwLock::read, closed", async || {
            assert!(lock.read().await.is_err());
        })
        .await;
        let gate = Gate::new();
        gate.close().await.unwrap();
        counts("Gate::close", async || {
            drop(gate.close().await.unwrap_err())
        })
        .await;
    });
}

#[test]
fn what_has_happened() {
    run(async {
        let cell = OnceCell::new();
        cell.set(7).unwrap();
        counts("OnceCell::get_or_init", async || {
            assert_eq!(*cell.get_or_init(async || 8).await, 7);
        })
        .await;
        counts("OnceCell::get_or_try_init", async || {
            let init = async || Ok::<_, Infallible>(8);
            assert_eq!(cell.get_or_try_init(init).await, Ok(&7));
        })
        .await;
        let token = CancellationToken::new();
        token.cancel();
        counts("Cancelled", async || token.cancelled().await).await;
    });
}
