//! Channels between tasks: of one executor, and of several.
//!
//! | module | values | ends |
//! |---|---|---|
//! | [`local_channel`] | a queue, bounded or not; each value goes to one receiver | one executor |
//! | [`shared_channel`] | a bounded queue; each value goes to one receiver | two executors |
//! | [`channel_mesh`] | shared channels between all executors of a group | any number of executors |
//! | [`sharding`] | messages routed to the executors that own what they are about | any number of executors |
//! | [`spsc_queue`] | the bounded ring below a shared channel, without waiting | two threads |
//! | [`oneshot`] | one value, once | one executor, or any threads |
//! | [`watch`] | the latest value only | one executor, or any threads |
//! | [`broadcast`] | a ring of the latest values; each receiver gets all of them | one executor, or any threads |
//!
//! ```
//! use glommio::{LocalExecutor, channels::{local_channel, oneshot}, spawn_local};
//!
//! LocalExecutor::default().run(async {
//!     // Requests with a place for the answer.
//!     let (requests, inbox) = local_channel::new_bounded::<(u32, oneshot::Sender<u32>)>(16);
//!     let server = spawn_local(async move {
//!         while let Some((number, reply)) = inbox.recv().await {
//!             let _ = reply.send(number * 2);
//!         }
//!     });
//!     let (reply, answer) = oneshot::oneshot();
//!     assert!(requests.send((21, reply)).await.is_ok());
//!     assert_eq!(answer.await.ok(), Some(42));
//!     drop(requests);
//!     server.await; // the channel is closed
//! });
//! ```
//!
//! Streams and futures may be dropped at any time, or kept and not polled: the value then goes to the next
//! task that waits. (Locks differ: see [`sync`](crate::sync).) A task that takes values without ever waiting
//! returns to the executor when its slice is over
//! ([`unconstrained`](crate::unconstrained) says how to change that). `try_recv` and `try_send` are no
//! futures: they answer at once, and do not count.
//!
//! Connecting a shared channel, joining a mesh and the methods of [`sharding`] need a running executor.
//! Tasks of any runtime may wait at the others.

// But for the slots of `spsc_queue`.
pub mod broadcast;
pub mod channel_mesh;
mod kept;
pub mod local_channel;
mod many;
pub mod oneshot;
pub mod sharding;
pub mod shared_channel;
pub mod spsc_queue;
pub mod storage;
#[cfg(all(test, loom))]
mod tests;
pub mod watch;
