//! Channels and locks of every crate with glommio's API.

use std::future::Future;

use workloads::channels::{Channels, Locks, Meshes, Receiver, Sender};

use super::adapter::Glommio;
use crate::rt;
use crate::rt::channels::channel_mesh::{FullMesh, MeshBuilder, Receivers, Senders};
use crate::rt::channels::local_channel::{self, LocalReceiver, LocalSender};
use crate::rt::channels::shared_channel::{
    self, ConnectedReceiver, ConnectedSender, SharedReceiver, SharedSender,
};

impl Channels for Glommio {
    type Sender = End<LocalSender<u64>>;
    type Receiver = End<LocalReceiver<u64>>;
    type UnboundedSender = End<LocalSender<u64>>;
    type UnboundedReceiver = End<LocalReceiver<u64>>;
    type SharedSender = SharedSender<u64>;
    type SharedReceiver = SharedReceiver<u64>;
    type Outlet = End<ConnectedSender<u64>>;
    type Inlet = End<ConnectedReceiver<u64>>;

    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let (sender, receiver) = local_channel::new_bounded(capacity);
        (End(sender), End(receiver))
    }

    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver) {
        let (sender, receiver) = local_channel::new_unbounded();
        (End(sender), End(receiver))
    }

    fn shared(capacity: usize) -> (Self::SharedSender, Self::SharedReceiver) {
        shared_channel::new_bounded(capacity)
    }

    async fn connect_sender(sender: Self::SharedSender) -> Self::Outlet {
        End(sender.connect().await)
    }

    async fn connect_receiver(receiver: Self::SharedReceiver) -> Self::Inlet {
        End(receiver.connect().await)
    }
}

/// An end of a channel, wrapped for want of a local type.
pub struct End<E>(E);

impl Sender for End<LocalSender<u64>> {
    async fn send(&self, number: u64) {
        self.0.send(number).await.expect("the receiver is there");
    }
}

impl Receiver for End<LocalReceiver<u64>> {
    async fn receive(&mut self) -> Option<u64> {
        self.0.recv().await
    }
}

impl Sender for End<ConnectedSender<u64>> {
    async fn send(&self, number: u64) {
        self.0.send(number).await.expect("the receiver is there");
    }
}

impl Receiver for End<ConnectedReceiver<u64>> {
    async fn receive(&mut self) -> Option<u64> {
        self.0.recv().await
    }
}

impl Meshes for Glommio {
    type Mesh = FullMesh<u64>;
    type Peer = (Senders<u64>, Receivers<u64>);

    fn mesh(peers: usize, capacity: usize) -> Self::Mesh {
        MeshBuilder::full(peers, capacity)
    }

    async fn join(mesh: Self::Mesh) -> Self::Peer {
        mesh.join().await.expect("as many join as the mesh has")
    }

    fn id((senders, _): &Self::Peer) -> usize {
        senders.peer_id()
    }

    async fn send_to((senders, _): &Self::Peer, peer: usize, number: u64) {
        let sent = senders.send_to(peer, number);
        sent.await.expect("the peer is there");
    }

    async fn receive_from((_, receivers): &Self::Peer, peer: usize) -> u64 {
        let received = receivers.recv_from(peer).await;
        let number = received.expect("it is another peer");
        number.expect("the peer is there")
    }
}

impl Locks for Glommio {
    type Semaphore = rt::sync::Semaphore;
    type Lock = rt::sync::RwLock<u64>;

    fn semaphore(units: usize) -> Self::Semaphore {
        rt::sync::Semaphore::new(units as u64)
    }

    async fn with_unit(semaphore: &Self::Semaphore, inside: impl Future<Output = ()>) {
        let _permit = semaphore.acquire_permit(1).await.expect("it is open");
        inside.await;
    }

    fn lock() -> Self::Lock {
        rt::sync::RwLock::new(0)
    }

    async fn read(lock: &Self::Lock) -> u64 {
        *lock.read().await.expect("it is open")
    }

    async fn write(lock: &Self::Lock, inside: impl Future<Output = ()>) {
        let mut number = lock.write().await.expect("it is open");
        inside.await;
        *number += 1;
    }
}
