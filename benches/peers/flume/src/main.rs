//! The channels of flume, on the executors of this repository.

use workloads::channels::{Channels, Receiver, Sender};

#[path = "../../glommio.rs"]
mod adapter;

/// The crate of the executors.
mod rt {
    pub use glommio::*;

    pub use glommio::timer::timeout;
}

use adapter::Glommio;

fn main() {
    workloads::main(&[&workloads::cases::channels::<Glommio>()]);
}

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
        let (sender, receiver) = flume::bounded(capacity);
        (Sending(sender), Receiving(receiver))
    }

    fn unbounded() -> (Sending, Receiving) {
        let (sender, receiver) = flume::unbounded();
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
pub struct Sending(flume::Sender<u64>);

impl Sender for Sending {
    async fn send(&self, number: u64) {
        let sent = self.0.send_async(number);
        sent.await.expect("the receiver is there");
    }
}

/// The receiving end, wherever it is.
pub struct Receiving(flume::Receiver<u64>);

impl Receiver for Receiving {
    async fn receive(&mut self) -> Option<u64> {
        self.0.recv_async().await.ok()
    }
}
