//! Servers whose load comes from another process.
//!
//! ```text
//!   driver ──starts──▶ peer-<crate> serve-echo ──▶  127.0.0.1:40123
//!          ──starts──▶ load .. 127.0.0.1:40123 ..   connects, asks, measures
//!          ──kills───▶ the server
//! ```
//!
//! These cases print their address and no figures, and serve until they are killed. What is measured with them is
//! said in `load`, the program that asks.

use std::future::Future;
use std::time::Duration;

use crate::machine::{die_with_parent, raise_descriptor_limit};
use crate::{Datagram, Listener, Network, Stream, announce};

const MESSAGE_BYTES: usize = 64;
const BLOCK_BYTES: usize = 64 << 10;

/// `serve-echo`: a task per connection sends back what it reads, at most 64 bytes at a time.
pub fn echo<R: Network>() {
    connections::<R, _>(MESSAGE_BYTES, None, echo_until_closed);
}

/// `serve-echo-timeout`: the same when every read may take 30 s at most.
pub fn echo_with_timeouts<R: Network>() {
    let limit = Duration::from_secs(30);
    connections::<R, _>(MESSAGE_BYTES, Some(limit), echo_until_closed);
}

/// `serve-sink`: reads, up to 64 KiB at a time, and answers nothing.
pub fn sink<R: Network>() {
    connections::<R, _>(BLOCK_BYTES, None, |mut stream| async move {
        while stream.receive_some().await > 0 {}
    });
}

/// `serve-source`: writes blocks of 64 KiB for as long as the client reads.
pub fn source<R: Network>() {
    connections::<R, _>(BLOCK_BYTES, None, |mut stream| async move {
        while stream.send(BLOCK_BYTES).await {}
    });
}

/// `serve-accept`: closes each connection as soon as it has been accepted.
pub fn accept<R: Network>() {
    forever::<R, _>(async || {
        let listener = R::listen();
        announce(listener.address());
        loop {
            drop(listener.accept(MESSAGE_BYTES).await);
        }
    });
}

/// `serve-datagrams`: one socket sends each datagram back to where it came from.
pub fn datagrams<R: Network>() {
    forever::<R, _>(async || {
        let mut socket = R::bind_datagram(MESSAGE_BYTES);
        announce(socket.address());
        loop {
            let (bytes, sender) = socket.receive_from().await;
            socket.send_to(bytes, sender).await;
        }
    });
}

async fn echo_until_closed(mut stream: impl Stream) {
    loop {
        let bytes = stream.receive_some().await;
        if bytes == 0 || !stream.send(bytes).await {
            break;
        }
    }
}

/// Accepts connections and spawns what `serve` makes of each.
fn connections<R: Network, F: Future<Output = ()> + 'static>(
    buffer_bytes: usize,
    read_timeout: Option<Duration>,
    serve: impl Fn(R::Stream) -> F + 'static,
) {
    forever::<R, _>(async move || {
        let listener = R::listen();
        announce(listener.address());
        loop {
            let mut stream = listener.accept(buffer_bytes).await;
            if let Some(limit) = read_timeout {
                stream.set_read_timeout(limit);
            }
            R::spawn_detached(serve(stream));
        }
    });
}

fn forever<R: Network, S: AsyncFnOnce() + 'static>(serve: S) {
    die_with_parent();
    raise_descriptor_limit();
    R::run(async move { serve().await });
}
