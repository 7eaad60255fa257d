//! What a runtime must offer for its channels and locks to be measured.
//!
//! Items are numbers. As in [`runtime`](crate::runtime), adapters hold no logic of their own.

use std::future::Future;

use crate::Runtime;

/// Runtimes with channels, their own or those of a crate.
pub trait Channels: Runtime {
    /// Sends within an executor, through a bounded channel.
    type Sender: Sender + 'static;
    /// Receives from it.
    type Receiver: Receiver + 'static;
    /// Sends within an executor, through an unbounded channel.
    type UnboundedSender: Sender + 'static;
    /// Receives from it.
    type UnboundedReceiver: Receiver + 'static;
    /// The sending end of a channel between executors, on the way to its own.
    type SharedSender: Send + 'static;
    /// The receiving end, on the way to its own.
    type SharedReceiver: Send + 'static;
    /// The sending end in its executor.
    type Outlet: Sender + 'static;
    /// The receiving end in its executor.
    type Inlet: Receiver + 'static;

    /// A channel between tasks of one executor, with a capacity of `capacity` items.
    fn bounded(capacity: usize) -> (Self::Sender, Self::Receiver);
    /// A channel between tasks of one executor, without a bound.
    fn unbounded() -> (Self::UnboundedSender, Self::UnboundedReceiver);
    /// A channel between two executors, with a capacity of `capacity` items.
    fn shared(capacity: usize) -> (Self::SharedSender, Self::SharedReceiver);
    /// Brings the sending end into the executor that runs here. The receiving end is brought into its own meanwhile.
    fn connect_sender(sender: Self::SharedSender) -> impl Future<Output = Self::Outlet>;
    /// Brings the receiving end into the executor that runs here. The sending end is brought into its own meanwhile.
    fn connect_receiver(receiver: Self::SharedReceiver) -> impl Future<Output = Self::Inlet>;
}

/// Sends numbers.
pub trait Sender {
    /// Waits for room.
    fn send(&self, number: u64) -> impl Future<Output = ()>;
}

/// Receives numbers.
pub trait Receiver {
    /// The next number; `None` when the sender is gone.
    fn receive(&mut self) -> impl Future<Output = Option<u64>>;
}

/// Runtimes that connect a group of executors, each with each.
pub trait Meshes: Runtime {
    /// What the executors of a group share.
    type Mesh: Clone + Send + 'static;
    /// The channels from and to one of them.
    type Peer: 'static;

    /// A mesh of so many executors, whose channels have a capacity of `capacity` items.
    fn mesh(peers: usize, capacity: usize) -> Self::Mesh;
    /// Joins from the executor that runs here.
    fn join(mesh: Self::Mesh) -> impl Future<Output = Self::Peer>;
    /// The number of an executor.
    fn id(own: &Self::Peer) -> usize;
    /// Sends to another.
    fn send_to(own: &Self::Peer, peer: usize, number: u64) -> impl Future<Output = ()>;
    /// Receives from another.
    fn receive_from(own: &Self::Peer, peer: usize) -> impl Future<Output = u64>;
}

/// Runtimes with locks for the tasks of an executor.
pub trait Locks: Runtime {
    /// Units that tasks wait for.
    type Semaphore: 'static;
    /// Many readers or one writer.
    type Lock: 'static;

    /// A semaphore with so many units.
    fn semaphore(units: usize) -> Self::Semaphore;
    /// Holds one unit during `inside`.
    fn with_unit(
        semaphore: &Self::Semaphore,
        inside: impl Future<Output = ()>,
    ) -> impl Future<Output = ()>;
    /// A lock around a number.
    fn lock() -> Self::Lock;
    /// Reads the number.
    fn read(lock: &Self::Lock) -> impl Future<Output = u64>;
    /// Adds one to the number after `inside`, with the lock held from before.
    fn write(lock: &Self::Lock, inside: impl Future<Output = ()>) -> impl Future<Output = ()>;
}

/// Runtimes with channels for one reply or for all listeners, and with cancellation, within an executor.
pub trait Notices: Runtime {
    /// Sends one number.
    type Reply: 'static;
    /// Waits for it.
    type Answer: Future<Output = u64> + 'static;
    /// Sends to all listeners.
    type Announcer: 'static;
    /// Hears all numbers.
    type Listener: 'static;
    /// A node of a tree that is cancelled from the top.
    type Token: 'static;

    /// A channel for one number.
    fn oneshot() -> (Self::Reply, Self::Answer);
    /// Sends it.
    fn reply(reply: Self::Reply, number: u64);
    /// A channel to all listeners, with a capacity of `capacity` items.
    fn broadcast(capacity: usize) -> (Self::Announcer, Self::Listener);
    /// One more listener.
    fn listen(announcer: &Self::Announcer) -> Self::Listener;
    /// Sends to all listeners.
    fn announce(announcer: &Self::Announcer, number: u64);
    /// The next number.
    fn hear(listener: &mut Self::Listener) -> impl Future<Output = u64>;
    /// A token at the top of a tree.
    fn token() -> Self::Token;
    /// One below another.
    fn child(token: &Self::Token) -> Self::Token;
    /// Cancels a token and all below it.
    fn cancel(token: &Self::Token);
    /// Waits until it is cancelled.
    fn cancelled(token: &Self::Token) -> impl Future<Output = ()>;
}
