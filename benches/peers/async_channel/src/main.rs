//! The channels of async-channel, on the executors of this repository.

#[path = "../../glommio.rs"]
mod adapter;
#[path = "../../any_channels.rs"]
mod channels;

/// The crate of the channels.
mod queue {
    pub use async_channel::{Receiver, Sender, bounded, unbounded};

    pub async fn send(sender: &Sender<u64>, number: u64) {
        let sent = sender.send(number).await;
        sent.expect("the receiver is there");
    }

    pub async fn receive(receiver: &Receiver<u64>) -> Option<u64> {
        receiver.recv().await.ok()
    }
}

use adapter::Glommio;
use glommio as rt;

fn main() {
    workloads::main(&[&workloads::cases::channels::<Glommio>()]);
}
