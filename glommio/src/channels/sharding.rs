//! Messages routed to the executors that own what they are about.
//!
//! Each executor of a full mesh is a shard. A function says to which shard a message belongs, and a
//! [`Handler`] says what to do with it there; messages come from [streams](Sharded::handle), or one
//! by one by [`send`](Sharded::send).
//!
//! ```
//! use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
//! use glommio::channels::channel_mesh::MeshBuilder;
//! use glommio::channels::sharding::{Handler, HandlerResult, Sharded};
//! use std::{cell::Cell, rc::Rc};
//!
//! /// Adds up the numbers that belong to its shard.
//! #[derive(Clone)]
//! struct Sum(Rc<Cell<u64>>);
//!
//! impl Handler<u64> for Sum {
//!     fn handle(&self, number: u64, _src_shard: usize, _cur_shard: usize) -> HandlerResult {
//!         self.0.set(self.0.get() + number);
//!         Box::pin(async {})
//!     }
//! }
//!
//! let mesh = MeshBuilder::full(2, 8);
//! let shards = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2)).on_all_shards(|| async move {
//!     let sum = Sum(Rc::default());
//!     let route = |number: &u64, shards: usize| *number as usize % shards;
//!     let mut sharded = Sharded::new(mesh, route, sum.clone()).await.expect("two join a mesh of two");
//!     sharded.handle(futures_lite::stream::iter(0..10)).expect("it is not closed");
//!     sharded.close().await;
//!     (sharded.shard_id(), sum.0.get())
//! })?;
//! for shard in shards.join_all() {
//!     // From both shards: the even numbers, or the odd ones.
//!     let (id, sum) = shard?;
//!     assert_eq!(sum, [40, 50][id]);
//! }
//! # Ok::<_, glommio::GlommioError<()>>(())
//! ```
//!
//! Messages of one shard are handled one after the other, in the order in which they were sent;
//! those of several shards concurrently. A slow handler holds back the shard whose message it
//! handles, once the channel between the two is full. So handlers that themselves send to shards
//! whose handlers send back can wait for each other forever: have a task of its own send, or use
//! channels large enough for all that is under way.
//!
//! Messages that are ready one after the other do not keep the executor: each counts in the
//! [budget](crate::consume_budget) of its task.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;

use super::channel_mesh::{FullMesh, Senders};
use super::shared_channel::ConnectedReceiver;
use crate::error::{GlommioError, ResourceType};
use crate::reactor::budget;
use crate::sync::Gate;

/// What a [`Handler`] returns.
pub type HandlerResult = Pin<Box<dyn Future<Output = ()>>>;

/// Tells to which of so many shards a message belongs.
pub type ShardFn<T> = fn(&T, usize) -> usize;

/// Handles messages in the shard to which they belong.
pub trait Handler<T>: Clone {
    /// Handles `msg`, which was sent by the shard `src_shard` and belongs to this one, `cur_shard`.
    /// Of each shard the next message is handled when the future is done.
    fn handle(&self, msg: T, src_shard: usize, cur_shard: usize) -> HandlerResult;
}

/// One shard: sends messages to where they belong, and handles those that belong here.
///
/// Dropping it without [`close`](Self::close) leaves its tasks running: streams are sent until they
/// end, and messages of other shards are handled until those close.
pub struct Sharded<T: Send, H> {
    shard: Rc<Shard<T, H>>,
    /// The tasks that send what comes from streams. Closed by `close`, first.
    streams: Gate,
    /// The tasks that handle what comes from other shards.
    sources: Gate,
}

struct Shard<T: Send, H> {
    senders: Senders<T>,
    shard_fn: ShardFn<T>,
    handler: H,
}

impl<T: Send + 'static, H: Handler<T> + 'static> Sharded<T, H> {
    /// Joins `mesh`, and begins to handle messages in tasks of the current task queue, with clones
    /// of `handler`.
    ///
    /// # Errors
    ///
    /// As [`FullMesh::join`](super::channel_mesh::MeshBuilder::join).
    ///
    /// # Panics
    ///
    /// As [`FullMesh::join`](super::channel_mesh::MeshBuilder::join).
    ///
    /// # Cancel safety
    ///
    /// As [`FullMesh::join`](super::channel_mesh::MeshBuilder::join).
    pub async fn new(
        mesh: FullMesh<T>,
        shard_fn: ShardFn<T>,
        handler: H,
    ) -> Result<Self, GlommioError<()>> {
        let (senders, mut receivers) = mesh.join().await?;
        let sources = Gate::new();
        for (source, receiver) in receivers.streams() {
            let served = serve(receiver, source, senders.peer_id(), handler.clone());
            sources.spawn(served)?.detach();
        }
        Ok(Sharded {
            shard: Rc::new(Shard {
                senders,
                shard_fn,
                handler,
            }),
            streams: Gate::new(),
            sources,
        })
    }

    /// How many shards there are.
    pub fn nr_shards(&self) -> usize {
        self.shard.senders.nr_consumers()
    }

    /// The number of this shard: its number in the mesh.
    pub fn shard_id(&self) -> usize {
        self.shard.senders.peer_id()
    }

    /// Sends the messages of a stream to where they belong, in their order, in a task of the
    /// current task queue. The task is queued: nothing is sent or handled inside of this call. It
    /// ends with the stream, or with the first message that cannot be sent: that is logged.
    ///
    /// # Errors
    ///
    /// `Closed` with the stream once [`close`](Self::close) was called.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn handle<S: Stream<Item = T> + Unpin + 'static>(
        &mut self,
        messages: S,
    ) -> Result<(), GlommioError<S>> {
        if !self.streams.is_open() {
            return Err(GlommioError::Closed(ResourceType::Channel(messages)));
        }
        let shard = Rc::clone(&self.shard);
        let forwarded = async move { forward(&shard, messages).await };
        let spawned = self.streams.spawn(forwarded);
        spawned.expect("the gate is open").detach();
        Ok(())
    }

    /// Sends a message to the shard `dst_shard`. If that is this one, handles it, and is done when
    /// the handler is; otherwise when the message is in the channel.
    ///
    /// # Errors
    ///
    /// `Closed` with the message once [`close`](Self::close) was called, and if the other shard is
    /// gone. `IoError` of kind `InvalidInput` if there is no such shard; the message is dropped
    /// then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it is done, the message was not sent; one that belongs here
    /// may have been handled in part.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::channels::sharding::{Handler, Sharded};
    ///
    /// /// To the shard that owns it, and to all the others.
    /// async fn everywhere<H>(sharded: &Sharded<u64, H>, key: u64) -> Result<(), glommio::GlommioError<u64>>
    /// where
    ///     H: Handler<u64> + 'static,
    /// {
    ///     sharded.send(key).await?;
    ///     for shard in 0..sharded.nr_shards() {
    ///         sharded.send_to(shard, key).await?;
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub async fn send_to(&self, dst_shard: usize, message: T) -> Result<(), GlommioError<T>> {
        if !self.streams.is_open() {
            let closed = Err(GlommioError::Closed(ResourceType::Channel(message)));
            return budget::checked(closed).await;
        }
        self.shard.send_to(dst_shard, message).await
    }

    /// Sends a message to the shard to which it belongs, as [`send_to`](Self::send_to).
    ///
    /// # Errors
    ///
    /// As [`send_to`](Self::send_to).
    ///
    /// # Cancel safety
    ///
    /// As [`send_to`](Self::send_to).
    pub async fn send(&self, message: T) -> Result<(), GlommioError<T>> {
        let dst_shard = self.shard.route(&message);
        self.send_to(dst_shard, message).await
    }

    /// Waits until the streams given to [`handle`](Self::handle) have ended and their messages are
    /// sent, closes the channels to the other shards, and waits until those have done the same
    /// and their messages are handled. So close all shards: each waits for the
    /// others.
    ///
    /// Messages of others are handled meanwhile. From the first poll on nothing else can be sent
    /// from here.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the shard closing; call this again to wait on.
    pub async fn close(&mut self) {
        // Either is an error if it is closed already, which is as good.
        let _ = self.streams.close().await;
        self.shard.senders.close();
        let _ = self.sources.close().await;
    }
}

impl<T: Send + 'static, H: Handler<T> + 'static> Shard<T, H> {
    fn route(&self, message: &T) -> usize {
        (self.shard_fn)(message, self.senders.nr_consumers())
    }

    async fn send_to(&self, dst_shard: usize, message: T) -> Result<(), GlommioError<T>> {
        let own = self.senders.peer_id();
        if dst_shard != own {
            return self.senders.send_to(dst_shard, message).await;
        }
        // A handler need not wait for anything.
        budget::consume().await;
        self.handler.handle(message, own, own).await;
        Ok(())
    }
}

/// Handles the messages of one other shard.
async fn serve<T: Send, H: Handler<T>>(
    receiver: ConnectedReceiver<T>,
    source: usize,
    own: usize,
    handler: H,
) {
    while let Some(message) = receiver.recv().await {
        handler.handle(message, source, own).await;
    }
}

/// Sends the messages of a stream.
async fn forward<T, H, S>(shard: &Shard<T, H>, mut messages: S)
where
    T: Send + 'static,
    H: Handler<T> + 'static,
    S: Stream<Item = T> + Unpin,
{
    while let Some(message) = poll_fn(|cx| Pin::new(&mut messages).poll_next(cx)).await {
        let dst_shard = shard.route(&message);
        if let Err(error) = shard.send_to(dst_shard, message).await {
            tracing::error!(
                "a stream of messages ends, for one cannot be sent to shard {dst_shard}: {error}"
            );
            return;
        }
    }
}

impl_debug! { [T: Send, H] Sharded[T, H], it:
    shard_id: it.shard.senders.peer_id(), nr_shards: it.shard.senders.nr_consumers(),
    is_closed: !it.streams.is_open(); ..
}
