//! Shared channels between all executors of a group, or between some and others.
//!
//! One builder is cloned to each executor, and each joins once. When all have joined, each gets its
//! ends of the channels between them: one [shared channel](super::shared_channel) per ordered pair.
//!
//! ```
//! use glommio::{LocalExecutorPoolBuilder, PoolPlacement, channels::channel_mesh::MeshBuilder};
//!
//! let mesh = MeshBuilder::full(3, 8);
//! let executors = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(3)).on_all_shards(|| async move {
//!     let (senders, mut receivers) = mesh.join().await.expect("three join a mesh of three");
//!     for peer in (0..senders.nr_consumers()).filter(|&peer| peer != senders.peer_id()) {
//!         senders.send_to(peer, senders.peer_id()).await.expect("the peer is there");
//!     }
//!     let mut sum = 0;
//!     for (from, receiver) in receivers.streams() {
//!         assert_eq!(receiver.recv().await, Some(from));
//!         sum += from;
//!     }
//!     sum + senders.peer_id()
//! })?;
//! for sum in executors.join_all() {
//!     assert_eq!(sum?, 0 + 1 + 2);
//! }
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! With the roles of producers and consumers:
//!
//! ```
//! use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
//! use glommio::channels::channel_mesh::{MeshBuilder, Role};
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! static HAS_PRODUCER: AtomicBool = AtomicBool::new(false);
//! let mesh = MeshBuilder::partial(2, 8);
//! assert_eq!(mesh.nr_peers(), 2);
//! let peers = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2)).on_all_shards(|| async move {
//!     // The first to come produces.
//!     if !HAS_PRODUCER.swap(true, Ordering::Relaxed) {
//!         let (senders, _) = mesh.join(Role::Producer).await.expect("two join a mesh of two");
//!         assert_eq!((senders.producer_id(), senders.nr_consumers()), (Some(0), 1));
//!         senders.try_send_to(0, 42).expect("there is space");
//!         senders.close();
//!     } else {
//!         let (_, receivers) = mesh.join(Role::Consumer).await.expect("two join a mesh of two");
//!         assert_eq!((receivers.consumer_id(), receivers.nr_producers()), (Some(0), 1));
//!         assert_eq!(receivers.recv_from(0).await.expect("there is a producer"), Some(42));
//!         assert_eq!(receivers.recv_from(0).await.expect("there is a producer"), None);
//!         assert_eq!(receivers.recv_many_from(0, &mut Vec::new(), 64).await.ok(), Some(0));
//!         assert!(receivers.try_recv_from(0).is_err());
//!     }
//! })?;
//! for peer in peers.join_all() {
//!     peer?;
//! }
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! Peers are numbered in the order of their executors' ids, so that a peer has the same number in
//! all meshes over the same executors. A peer whose executor ends, or that gives up when all have
//! joined, reads as one that has closed its channels. If one ends before, the others fail to join.

mod rendezvous;

use std::io;
use std::marker::PhantomData;

use rendezvous::Handle;
pub use rendezvous::Role;

use super::shared_channel::{ConnectedReceiver, ConnectedSender, SharedReceiver, SharedSender};
use crate::error::GlommioError;
use crate::executor::executor;
use crate::loom::sync::Arc;
use crate::reactor::budget;

/// A mesh in which each peer sends to every other.
pub type FullMesh<T> = MeshBuilder<T, Full>;

/// A mesh in which producers send to consumers.
pub type PartialMesh<T> = MeshBuilder<T, Partial>;

/// Makes the channels of a mesh. A clone is a handle to the same mesh.
pub struct MeshBuilder<T: Send, A: MeshAdapter> {
    handle: Handle<T>,
    peers: usize,
    capacity: usize,
    /// What the adapter says, and not the adapter: so the mesh can be sent to other threads, whatever
    /// that is.
    is_full: bool,
    adapter: PhantomData<fn() -> A>,
}

/// Between which peers there are channels: [`Full`] or [`Partial`].
pub trait MeshAdapter: Clone {
    /// Whether peers without a channel have a place among the channels all the same, so that their
    /// numbers are those of the peers.
    fn is_full(&self) -> bool;

    /// Whether a channel leads from a peer with the role `from` to one with the role `to`.
    fn connect(&self, from: &Role, to: &Role) -> bool;
}

/// Every peer sends to every other.
#[derive(Clone, Debug)]
pub struct Full;

impl MeshAdapter for Full {
    fn is_full(&self) -> bool {
        true
    }

    fn connect(&self, _: &Role, _: &Role) -> bool {
        true
    }
}

/// Producers send to consumers.
#[derive(Clone, Debug)]
pub struct Partial;

impl MeshAdapter for Partial {
    fn is_full(&self) -> bool {
        false
    }

    fn connect(&self, from: &Role, to: &Role) -> bool {
        (from, to) == (&Role::Producer, &Role::Consumer)
    }
}

impl<T: 'static + Send> MeshBuilder<T, Full> {
    /// A mesh of `nr_peers` executors, each with a channel to every other that holds `channel_size`
    /// messages, rounded up to a power of two.
    pub fn full(nr_peers: usize, channel_size: usize) -> Self {
        Self::new(nr_peers, channel_size, &Full)
    }

    /// Waits until all peers have joined, and returns the channels to and from this one.
    ///
    /// # Errors
    ///
    /// `IoError` if as many peers have joined as the mesh has. `IoError` of kind `BrokenPipe` if peers
    /// are missing and no other builder of the mesh is left, so that none can come: a task or a shard
    /// that was to join has ended before, and has dropped its builder. A clone that is kept is one
    /// that may still join, also in the closure of a pool that
    /// [restarts](crate::ShardExitPolicy::Restart) its shards.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread, or if it has joined already and the mesh is
    /// not complete yet.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while peers are missing, this one has not joined, and may join
    /// again. If it is dropped later, the channels of this peer are closed.
    pub async fn join(self) -> Result<(Senders<T>, Receivers<T>), GlommioError<()>> {
        self.join_as(Role::Both).await
    }
}

impl<T: 'static + Send> MeshBuilder<T, Partial> {
    /// A mesh of `nr_peers` executors, in which each producer has a channel to each consumer that
    /// holds `channel_size` messages, rounded up to a power of two.
    pub fn partial(nr_peers: usize, channel_size: usize) -> Self {
        Self::new(nr_peers, channel_size, &Partial)
    }

    /// As [`MeshBuilder::join`] of a full mesh, as a peer that does what `role` says.
    pub async fn join(self, role: Role) -> Result<(Senders<T>, Receivers<T>), GlommioError<()>> {
        self.join_as(role).await
    }
}

impl<T: 'static + Send, A: MeshAdapter> MeshBuilder<T, A> {
    fn new(peers: usize, capacity: usize, adapter: &A) -> Self {
        MeshBuilder {
            handle: Handle::new(peers),
            peers,
            capacity,
            is_full: adapter.is_full(),
            adapter: PhantomData,
        }
    }

    /// How many executors are to join.
    pub fn nr_peers(&self) -> usize {
        self.peers
    }

    async fn join_as(self, role: Role) -> Result<(Senders<T>, Receivers<T>), GlommioError<()>> {
        budget::consume().await;
        let rendezvous = Arc::clone(&self.handle.0);
        let membership = rendezvous.enter(executor().id(), role)?;
        membership.complete(self.is_full, self.capacity);
        // Used up, so that those that are left tell whether a peer can still come.
        drop(self);
        let place = membership.place().await?;
        let id_unless = |other| (role != other).then_some(place.role_id);
        // All have come here, so no end has to wait for the other one.
        let senders = place.senders.into_iter();
        let senders = Side {
            peer_id: place.peer_id,
            id_in_role: id_unless(Role::Consumer),
            channels: senders.map(|it| it.map(SharedSender::bind)).collect(),
        };
        let receivers = place.receivers.into_iter();
        let receivers = Side {
            peer_id: place.peer_id,
            id_in_role: id_unless(Role::Producer),
            channels: receivers.map(|it| it.map(SharedReceiver::bind)).collect(),
        };
        Ok((Senders { side: senders }, Receivers { side: receivers }))
    }
}

impl<T: Send, A: MeshAdapter> Clone for MeshBuilder<T, A> {
    fn clone(&self) -> Self {
        MeshBuilder {
            handle: self.handle.clone(),
            is_full: self.is_full,
            peers: self.peers,
            capacity: self.capacity,
            adapter: PhantomData,
        }
    }
}

impl_debug! { [T: Send, A: MeshAdapter] MeshBuilder[T, A], it:
    nr_peers: it.peers, channel_size: it.capacity, joined: it.handle.0.joined(); ..
}

/// One direction of a peer's channels.
#[derive(Debug)]
struct Side<C> {
    /// Among all peers, and among those with the role that has this direction.
    peer_id: usize,
    id_in_role: Option<usize>,
    /// None at the place of the peer itself, and of those that were taken out.
    channels: Vec<Option<C>>,
}

/// The channels from one peer of a mesh to the others.
#[derive(Debug)]
pub struct Senders<T: Send> {
    side: Side<ConnectedSender<T>>,
}

impl<T: Send> Senders<T> {
    /// Sends to the consumer with the number `idx`, as [`ConnectedSender::send`].
    ///
    /// # Errors
    ///
    /// As [`ConnectedSender::send`], and `IoError` of kind `InvalidInput` if `idx` is this peer or
    /// none. The message is dropped then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is done, the message was not sent and is dropped.
    pub async fn send_to(&self, idx: usize, msg: T) -> Result<(), GlommioError<T>> {
        let refused = match self.side.channels.get(idx) {
            Some(Some(sender)) => return sender.send(msg).await,
            Some(None) => invalid(SENT_TO_ITSELF),
            None => invalid(format!("Shard {idx} is invalid in the channel mesh")),
        };
        budget::checked(refused).await
    }

    /// Sends to the consumer with the number `idx` if there is space, as
    /// [`ConnectedSender::try_send`].
    ///
    /// # Errors
    ///
    /// As [`ConnectedSender::try_send`], and `IoError` of kind `InvalidInput` if `idx` is this peer
    /// or none. The message is dropped then.
    pub fn try_send_to(&self, idx: usize, msg: T) -> Result<(), GlommioError<T>> {
        match self.side.channels.get(idx) {
            Some(Some(sender)) => sender.try_send(msg),
            Some(None) | None => invalid(SENT_TO_ITSELF),
        }
    }

    /// Closes all channels from this peer: the consumers get what was sent, and then the end.
    pub fn close(&self) {
        self.side
            .channels
            .iter()
            .flatten()
            .for_each(|it| it.close());
    }

    /// How many consumers there are. In a full mesh these are the peers, including this one.
    pub fn nr_consumers(&self) -> usize {
        self.side.channels.len()
    }

    /// The number of this peer among those with its role; `None` for a consumer.
    pub fn producer_id(&self) -> Option<usize> {
        self.side.id_in_role
    }

    /// The number of this peer among all peers.
    pub fn peer_id(&self) -> usize {
        self.side.peer_id
    }
}

/// The channels to one peer of a mesh from the others.
#[derive(Debug)]
pub struct Receivers<T: Send> {
    side: Side<ConnectedReceiver<T>>,
}

impl<T: Send> Receivers<T> {
    /// The next message of the producer with the number `idx`. `None` once that is closed or gone
    /// and all of its messages were received.
    ///
    /// # Errors
    ///
    /// `IoError` of kind `InvalidInput` if `idx` is this peer or none, or was taken out by
    /// [`streams`](Self::streams).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn recv_from(&self, idx: usize) -> Result<Option<T>, GlommioError<()>> {
        match self.receiver(idx) {
            Ok(receiver) => Ok(receiver.recv().await),
            Err(error) => budget::checked(Err(error)).await,
        }
    }

    /// The next message of the producer with the number `idx`, if it is there, as
    /// [`ConnectedReceiver::try_recv`].
    ///
    /// # Errors
    ///
    /// As [`ConnectedReceiver::try_recv`] and [`recv_from`](Self::recv_from).
    pub fn try_recv_from(&self, idx: usize) -> Result<T, GlommioError<()>> {
        self.receiver(idx)?.try_recv()
    }

    /// Waits for messages of the producer with the number `idx`, and appends at most `limit` of those
    /// that are there to `buffer`, as [`ConnectedReceiver::recv_many`].
    ///
    /// # Errors
    ///
    /// As [`recv_from`](Self::recv_from).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message: none is taken before it is done.
    pub async fn recv_many_from(
        &self,
        idx: usize,
        buffer: &mut Vec<T>,
        limit: usize,
    ) -> Result<usize, GlommioError<()>> {
        match self.receiver(idx) {
            Ok(receiver) => Ok(receiver.recv_many(buffer, limit).await),
            Err(error) => budget::checked(Err(error)).await,
        }
    }

    fn receiver(&self, idx: usize) -> Result<&ConnectedReceiver<T>, GlommioError<()>> {
        if let Some(Some(receiver)) = self.side.channels.get(idx) {
            return Ok(receiver);
        }
        invalid("Local message should not be received from channel mesh")
    }

    /// Takes out the channels from all producers, with their numbers.
    pub fn streams(&mut self) -> Vec<(usize, ConnectedReceiver<T>)> {
        let receivers = self.side.channels.iter_mut().enumerate();
        receivers
            .filter_map(|(idx, receiver)| Some((idx, receiver.take()?)))
            .collect()
    }

    /// How many producers there are. In a full mesh these are the peers, including this one.
    pub fn nr_producers(&self) -> usize {
        self.side.channels.len()
    }

    /// The number of this peer among those with its role; `None` for a producer.
    pub fn consumer_id(&self) -> Option<usize> {
        self.side.id_in_role
    }

    /// The number of this peer among all peers.
    pub fn peer_id(&self) -> usize {
        self.side.peer_id
    }
}

const SENT_TO_ITSELF: &str = "Local message should not be sent via channel mesh";

fn invalid<R, T>(why: impl Into<String>) -> Result<R, GlommioError<T>> {
    let error = io::Error::new(io::ErrorKind::InvalidInput, why.into());
    Err(GlommioError::IoError(error))
}
