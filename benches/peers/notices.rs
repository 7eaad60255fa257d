//! Channels for one reply or for all listeners, and cancellation. `parts`, beside it, says of which crate.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use workloads::channels::Notices;

use super::parts::{CancellationToken, Peer, broadcast, oneshot};

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

impl Notices for Peer {
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
        announcer.send(number).expect("there are listeners");
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
