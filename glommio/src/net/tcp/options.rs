//! Options of TCP sockets.

#![forbid(unsafe_code)]

use std::time::Duration;

use socket2::TcpKeepalive;

use super::{TcpListener, TcpStream};
use crate::net::options::{bound_options, in_whole_seconds, internet_options, socket_options};
use crate::net::{Result, RxBuf};

/// Options. There are more; the crate `socket2` sets them on any stream, through its `SockRef`.
impl<B: RxBuf> TcpStream<B> {
    /// Sets `TCP_NODELAY`: whether small writes are sent at once. Off by default.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn set_nodelay(&self, value: bool) -> Result<()> {
        Ok(self.socket().set_tcp_nodelay(value)?)
    }

    /// Whether small writes are sent at once.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn nodelay(&self) -> Result<bool> {
        Ok(self.socket().tcp_nodelay()?)
    }

    /// Sets `TCP_QUICKACK`: whether received data is acknowledged at once, or with the next data
    /// sent or after some 40 ms. On at first. It does not last: the kernel changes it with the
    /// traffic.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn set_quickack(&self, quickack: bool) -> Result<()> {
        Ok(self.socket().set_tcp_quickack(quickack)?)
    }

    /// Whether received data is acknowledged at once, just now.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn quickack(&self) -> Result<bool> {
        Ok(self.socket().tcp_quickack()?)
    }

    /// Sets `SO_LINGER`: what becomes of data that has not been sent, or not been acknowledged,
    /// when the stream is dropped.
    ///
    /// With `None`, the default, the kernel goes on sending it by itself. With zero it is thrown
    /// away and the connection is reset. With any other time, rounded up to whole seconds,
    /// **dropping the stream blocks the executor** until all is acknowledged or the time is
    /// over.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` gives.
    pub fn set_linger(&self, linger: Option<Duration>) -> Result<()> {
        Ok(self.socket().set_linger(linger.map(in_whole_seconds))?)
    }

    /// What was set by [`set_linger`](Self::set_linger), in whole seconds.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn linger(&self) -> Result<Option<Duration>> {
        Ok(self.socket().linger()?)
    }

    /// Sets after how long without traffic the kernel begins to send keepalive probes
    /// (`SO_KEEPALIVE`, `TCP_KEEPIDLE`), rounded up to whole seconds. If the peer does not
    /// answer (by default, nine probes 75 seconds apart), the connection ends with kind
    /// `TimedOut`, also for a read that waits. `None`, the default, is never.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput`, `EINVAL`, if `idle` is zero or more than 32,767 seconds. After an error
    /// it is on if it was before, and off if it was off.
    pub fn set_keepalive(&self, idle: Option<Duration>) -> Result<()> {
        let socket = self.socket();
        let Some(idle) = idle else {
            return Ok(socket.set_keepalive(false)?);
        };
        let was_on = socket.keepalive()?;
        let keepalive = TcpKeepalive::new().with_time(in_whole_seconds(idle));
        if let Err(error) = socket.set_tcp_keepalive(&keepalive) {
            socket.set_keepalive(was_on)?;
            return Err(error.into());
        }
        Ok(())
    }

    /// What was set by [`set_keepalive`](Self::set_keepalive), in whole seconds.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` gives.
    pub fn keepalive(&self) -> Result<Option<Duration>> {
        let socket = self.socket();
        if !socket.keepalive()? {
            return Ok(None);
        }
        Ok(Some(socket.tcp_keepalive_time()?))
    }

    socket_options!();
    internet_options!();
}

/// Options, which connections inherit when they are established. The receive buffer's size is best
/// set here: TCP settles at the start of a connection how far its window may grow.
impl TcpListener {
    socket_options!();
    internet_options!();
    bound_options!();
}
