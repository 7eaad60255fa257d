//! What the servers among the examples share.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use futures_lite::{AsyncRead, AsyncWrite};
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

/// A stream that one future reads and another writes, both of the same task.
///
/// The traits borrow the stream mutably; here nothing is borrowed during a wait.
#[derive(Debug)]
pub struct Duplex(RefCell<TcpStream>);

impl Duplex {
    /// Both directions of `stream`.
    pub fn new(stream: TcpStream) -> Duplex {
        Duplex(RefCell::new(stream))
    }

    /// As `AsyncReadExt::read`.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_read(cx, buffer)).await
    }

    /// As `AsyncWriteExt::write`.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_write(cx, bytes)).await
    }

    /// As `AsyncWriteExt::write_all`.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = self.write(bytes).await?;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// As `AsyncWriteExt::close`: sends the end, and reading goes on.
    pub async fn close(&self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self.0.borrow_mut()).poll_close(cx)).await
    }

    /// As `TcpStream::set_read_timeout`.
    pub fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        Ok(self.0.borrow().set_read_timeout(Some(timeout))?)
    }

    /// As `TcpStream::set_write_timeout`.
    pub fn set_write_timeout(&self, timeout: Duration) -> io::Result<()> {
        Ok(self.0.borrow().set_write_timeout(Some(timeout))?)
    }
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
