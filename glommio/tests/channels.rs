//! Channels: within one executor, and the shared forms between threads.
//!
//! Most futures are polled by hand, so that each order of events can be had and no test depends on time. Long runs of
//! random operations do 100,000 each, or as many as `GLOMMIO_OPERATIONS` says.

mod common;
#[path = "timer/hooks.rs"]
#[allow(dead_code, reason = "used in part")]
mod hooks;
#[path = "common/polled.rs"]
#[allow(dead_code, reason = "used in part")]
mod polled;

#[path = "channels/broadcast.rs"]
mod broadcast;
#[path = "channels/broadcast_random.rs"]
mod broadcast_random;
#[path = "channels/local.rs"]
mod local;
#[path = "channels/mesh.rs"]
mod mesh;
#[path = "channels/oneshot.rs"]
mod oneshot;
#[path = "channels/payload.rs"]
mod payload;
#[path = "channels/queue_random.rs"]
mod queue_random;
#[path = "channels/sharding.rs"]
mod sharding;
#[path = "channels/shared.rs"]
mod shared;
#[path = "channels/shared_threads.rs"]
mod shared_threads;
#[path = "channels/spsc.rs"]
mod spsc;
#[path = "channels/threads.rs"]
mod threads;
#[path = "channels/watch.rs"]
mod watch;
#[path = "channels/watch_random.rs"]
mod watch_random;
