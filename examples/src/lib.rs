//! What the HTTP servers among the examples share.

#![forbid(unsafe_code)]

use std::time::Duration;

use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;
use glommio::timer::sleep;

/// Accepts connections for ever and has each served by a task of its own.
///
/// An error of `accept` is no reason to end: the listener remains usable.
pub async fn accept_each<F>(listener: &TcpListener, serve: impl Fn(TcpStream) -> F) -> !
where
    F: Future<Output = ()> + 'static,
{
    loop {
        match listener.accept().await {
            // A task whose handle is dropped is cancelled; this one runs on by itself.
            Ok(stream) => drop(spawn_local(serve(stream)).detach()),
            Err(error) => {
                // Out of descriptors, most likely. They come back as connections end.
                eprintln!("cannot accept: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
