//! tokio's channels and locks, which are the same within a thread and between two.

use std::future::Future;

use tokio::sync::{RwLock, Semaphore, mpsc};
use workloads::channels::{Channels, Locks, Receiver, Sender};

use crate::Tokio;

#[path = "../../notices.rs"]
mod notices;

mod parts {
    pub use tokio::sync::{broadcast, oneshot};
    pub use tokio_util::sync::CancellationToken;

    pub(crate) use crate::Tokio as Peer;
}

impl Channels for Tokio {
    type Sender = End<mpsc::Sender<u64>>;
    type Receiver = End<mpsc::Receiver<u64>>;
    type UnboundedSender = End<mpsc::UnboundedSender<u64>>;
    type UnboundedReceiver = End<mpsc::UnboundedReceiver<u64>>;
    type SharedSender = End<mpsc::Sender<u64>>;
    type SharedReceiver = End<mpsc::Receiver<u64>>;
    type Outlet = End<mpsc::Sender<u64>>;
    type Inlet = End<mpsc::Receiver<u64>>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = mpsc::channel(capacity);
        (End(sender), End(receiver))
    }

    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (End(sender), End(receiver))
    }

    fn shared(capacity: usize) -> (Self::SharedSender, Self::SharedReceiver) {
        Self::bounded(capacity)
    }

    async fn connect_sender(sender: Self::SharedSender) -> Self::Outlet {
        sender
    }

    async fn connect_receiver(receiver: Self::SharedReceiver) -> Self::Inlet {
        receiver
    }
}

/// An end of a channel, wrapped for want of a local type.
pub struct End<E>(E);

impl Sender for End<mpsc::Sender<u64>> {
    async fn send(&self, number: u64) {
        self.0.send(number).await.expect("the receiver is there");
    }
}

impl Sender for End<mpsc::UnboundedSender<u64>> {
    async fn send(&self, number: u64) {
        self.0.send(number).expect("the receiver is there");
    }
}

impl Receiver for End<mpsc::Receiver<u64>> {
    async fn receive(&mut self) -> Option<u64> {
        self.0.recv().await
    }
}

impl Receiver for End<mpsc::UnboundedReceiver<u64>> {
    async fn receive(&mut self) -> Option<u64> {
        self.0.recv().await
    }
}

impl Locks for Tokio {
    type Semaphore = Semaphore;
    type Lock = RwLock<u64>;

    fn semaphore(units: usize) -> Self::Semaphore {
        Semaphore::new(units)
    }

    async fn with_unit(semaphore: &Self::Semaphore, inside: impl Future<Output = ()>) {
        let _permit = semaphore.acquire().await.expect("it is open");
        inside.await;
    }

    fn lock() -> Self::Lock {
        RwLock::new(0)
    }

    async fn read(lock: &Self::Lock) -> u64 {
        *lock.read().await
    }

    async fn write(lock: &Self::Lock, inside: impl Future<Output = ()>) {
        let mut number = lock.write().await;
        inside.await;
        *number += 1;
    }
}
