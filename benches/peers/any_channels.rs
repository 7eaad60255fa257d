//! The adapter of a crate of channels for any executor. `queue`, one level up, says which crate that is.

use workloads::channels::{Channels, Receiver, Sender};

use super::adapter::Glommio;
use crate::queue;

impl Channels for Glommio {
    type Sender = Sending;
    type Receiver = Receiving;
    type UnboundedSender = Sending;
    type UnboundedReceiver = Receiving;
    type SharedSender = Sending;
    type SharedReceiver = Receiving;
    type Outlet = Sending;
    type Inlet = Receiving;

    fn bounded(capacity: usize) -> (Sending, Receiving) {
        let (sender, receiver) = queue::bounded(capacity);
        (Sending(sender), Receiving(receiver))
    }

    fn unbounded() -> (Sending, Receiving) {
        let (sender, receiver) = queue::unbounded();
        (Sending(sender), Receiving(receiver))
    }

    fn shared(capacity: usize) -> (Sending, Receiving) {
        Self::bounded(capacity)
    }

    async fn connect_sender(sender: Sending) -> Sending {
        sender
    }

    async fn connect_receiver(receiver: Receiving) -> Receiving {
        receiver
    }
}

/// The sending end, wherever it is.
pub struct Sending(queue::Sender<u64>);

impl Sender for Sending {
    async fn send(&self, number: u64) {
        queue::send(&self.0, number).await;
    }
}

/// The receiving end, wherever it is.
pub struct Receiving(queue::Receiver<u64>);

impl Receiver for Receiving {
    async fn receive(&mut self) -> Option<u64> {
        queue::receive(&self.0).await
    }
}
