//! Channels: within one executor, and the shared forms between threads.
//!
//! Most futures are polled by hand, so that each order of events can be had and no test depends on
//! time. Long runs of random operations do 100,000 each, or as many as `GLOMMIO_OPERATIONS` says.

use common::polled::keeps_one_waker;
use futures_lite::Stream;
use glommio::channels;

use crate::common::prelude::*;

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod broadcast;
mod broadcast_random;
mod budget;
mod draining;
mod given_up;
mod local;
mod mesh;
mod oneshot;
mod payload;
mod queue_random;
mod sharding;
mod shared;
mod shared_threads;
mod shared_wakes;
mod spsc;
mod threads;
mod watch;
mod watch_random;

#[test]
fn a_wait_that_is_polled_often_keeps_one_waker() {
    fn stream(mut stream: impl Stream + Unpin) {
        keeps_one_waker(poll_fn(move |cx| stream.poll_next(cx)));
    }
    let (_sender, receiver) = channels::watch::watch(0);
    stream(receiver);
    let (_sender, receiver) = channels::watch::shared(0);
    stream(receiver);
    let (_sender, receiver) = channels::broadcast::broadcast::<u8>(1);
    stream(receiver);
    let (_sender, receiver) = channels::broadcast::shared::<u8>(1);
    stream(receiver);
    let (_sender, receiver) = channels::oneshot::oneshot::<u8>();
    keeps_one_waker(receiver);
    let (_sender, receiver) = channels::oneshot::shared::<u8>();
    keeps_one_waker(receiver);
    let (sender, receiver) = channels::local_channel::new_bounded(0);
    keeps_one_waker(sender.send(1));
    keeps_one_waker(receiver.recv());
    stream(receiver.stream());
    let (sender, receiver) = channels::shared_channel::new_bounded::<u8>(2);
    let (_sender, receiver) = common::run(zip(sender.connect(), receiver.connect()));
    keeps_one_waker(receiver.recv());
}
