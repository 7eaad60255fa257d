//! tokio's channels and locks, which are the same within a thread and between two.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::{RwLock, Semaphore, broadcast, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use workloads::channels::{Channels, Locks, Notices, Receiver, Sender};

use crate::Tokio;

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

/// The future of a reply, which resolves to the number itself.
pub struct Answer(oneshot::Receiver<u64>);

impl Future for Answer {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<u64> {
        Pin::new(&mut self.0)
            .poll(context)
            .map(|number| number.expect("the sender replies"))
    }
}

impl Notices for Tokio {
    type Reply = oneshot::Sender<u64>;
    type Answer = Answer;
    type Announcer = broadcast::Sender<u64>;
    type Listener = broadcast::Receiver<u64>;
    type Token = CancellationToken;

    fn oneshot() -> (Self::Reply, Self::Answer) {
        let (sender, receiver) = oneshot::channel();
        (sender, Answer(receiver))
    }

    fn reply(reply: Self::Reply, number: u64) {
        reply.send(number).expect("the receiver waits");
    }

    fn broadcast(capacity: usize) -> (Self::Announcer, Self::Listener) {
        broadcast::channel(capacity)
    }

    fn listen(announcer: &Self::Announcer) -> Self::Listener {
        announcer.subscribe()
    }

    fn announce(announcer: &Self::Announcer, number: u64) {
        announcer.send(number).expect("the receivers are there");
    }

    async fn hear(listener: &mut Self::Listener) -> u64 {
        listener.recv().await.expect("nothing is missed")
    }

    fn token() -> Self::Token {
        CancellationToken::new()
    }

    fn child(token: &Self::Token) -> Self::Token {
        token.child_token()
    }

    fn cancel(token: &Self::Token) {
        token.cancel();
    }

    async fn cancelled(token: &Self::Token) {
        token.cancelled().await;
    }
}
