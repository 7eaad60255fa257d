//! Options of TCP sockets.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::TcpKeepalive;

use super::{TcpListener, TcpStream};
use crate::error::GlommioError;
use crate::net::options::{
    bound_options, in_units, in_whole_seconds, internet_options, socket_options,
};
use crate::net::{Result, RxBuf};
use crate::sys::socket::{set_tcp_option, tcp_option};

/// Options. There are more; the crate `socket2` sets them on any stream, through its `SockRef`.
/// Errors are those of `getsockopt(2)` and `setsockopt(2)`.
impl<B: RxBuf> TcpStream<B> {
    /// Sets `TCP_NODELAY`: whether small writes are sent at once. Off by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::{TcpListener, TcpStream};
    /// use std::time::Duration;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let stream = TcpStream::connect(listener.local_addr()?).await?;
    /// stream.set_nodelay(true)?;
    /// assert!(stream.nodelay()?);
    /// stream.set_quickack(false)?; // until the kernel changes its mind
    /// let acknowledges_at_once = stream.quickack()?;
    /// # let _ = acknowledges_at_once;
    ///
    /// assert_eq!(stream.keepalive()?, None);
    /// let minute = Some(Duration::from_secs(60));
    /// stream.set_keepalive(minute)?;
    /// stream.set_user_timeout(minute)?;
    /// assert_eq!((stream.keepalive()?, stream.user_timeout()?), (minute, minute));
    ///
    /// stream.set_linger(Some(Duration::ZERO))?; // dropping the stream resets the connection
    /// assert_eq!(stream.linger()?, Some(Duration::ZERO));
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_nodelay(&self, value: bool) -> Result<()> {
        Ok(self.socket().set_tcp_nodelay(value)?)
    }

    /// Whether small writes are sent at once.
    pub fn nodelay(&self) -> Result<bool> {
        Ok(self.socket().tcp_nodelay()?)
    }

    /// Sets `TCP_QUICKACK`: whether received data is acknowledged at once, or with the next data
    /// sent or after about 40 ms. On at first. It does not last: the kernel changes it with the
    /// traffic.
    pub fn set_quickack(&self, quickack: bool) -> Result<()> {
        Ok(self.socket().set_tcp_quickack(quickack)?)
    }

    /// Whether received data is acknowledged at once, just now.
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
    pub fn set_linger(&self, linger: Option<Duration>) -> Result<()> {
        Ok(self.socket().set_linger(linger.map(in_whole_seconds))?)
    }

    /// The value set by [`set_linger`](Self::set_linger), in whole seconds.
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
    /// it is on if it was before, and off if it was off. Kind `Unsupported` in a simulation.
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

    /// The value set by [`set_keepalive`](Self::set_keepalive), in whole seconds.
    pub fn keepalive(&self) -> Result<Option<Duration>> {
        let socket = self.socket();
        if !socket.keepalive()? {
            return Ok(None);
        }
        Ok(Some(socket.tcp_keepalive_time()?))
    }

    /// Sets for how long what was sent may stay unacknowledged, or unsent as the peer takes no
    /// more, before the connection ends with kind `TimedOut` (`TCP_USER_TIMEOUT`, RFC 5482),
    /// rounded up to whole milliseconds. `None`, the default, leaves it to the kernel's
    /// retransmissions, which take about 15 minutes.
    ///
    /// A proxy that waits for neither end of a connection learns by this of a peer that is gone.
    /// It also bounds the probes of [`set_keepalive`](Self::set_keepalive), in place of their
    /// number.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if `timeout` is zero, or more than about 24 days.
    pub fn set_user_timeout(&self, timeout: Option<Duration>) -> Result<()> {
        let timeout = match timeout {
            Some(Duration::ZERO) => return Err(zero("a user timeout")),
            Some(timeout) => in_units(timeout, Duration::from_millis(1))?,
            None => 0,
        };
        let timeout = Duration::from_millis(timeout.into());
        Ok(self.socket().set_tcp_user_timeout(Some(timeout))?)
    }

    /// The value set by [`set_user_timeout`](Self::set_user_timeout), in whole milliseconds.
    pub fn user_timeout(&self) -> Result<Option<Duration>> {
        Ok(self.socket().tcp_user_timeout()?)
    }

    socket_options!();
    internet_options!();
}

/// Options, which connections inherit when they are established. The receive buffer's size is best
/// set here: TCP settles at the start of a connection how far its window may grow. Errors are those of
/// `getsockopt(2)` and `setsockopt(2)`.
impl TcpListener {
    /// Accepts a connection only when the client has sent something (`TCP_DEFER_ACCEPT`), so that a
    /// server whose clients speak first is not woken for nothing. One that stays silent is accepted
    /// after `patience`, or dropped by the kernel some time after that. `None`, the default: at
    /// once.
    ///
    /// The kernel counts `patience` in transmissions of its answer to the client, after 1, 3, 7, 15
    /// seconds and so on; it is rounded up to one of these.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if `patience` is zero, or more than an `int` of seconds. Kind
    /// `Unsupported` in a simulation.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::TcpListener;
    /// use std::time::Duration;
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// listener.set_defer_accept(Some(Duration::from_secs(5)))?;
    /// assert_eq!(listener.defer_accept()?, Some(Duration::from_secs(7)));
    /// listener.set_fastopen(16)?;
    /// assert_eq!(listener.fastopen()?, 16);
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn set_defer_accept(&self, patience: Option<Duration>) -> Result<()> {
        let seconds = match patience {
            Some(Duration::ZERO) => return Err(zero("the time of a deferred accept")),
            Some(patience) => in_units(patience, Duration::from_secs(1))?,
            None => 0,
        };
        let listener = self.socket().as_fd();
        let seconds = seconds.cast_signed();
        Ok(set_tcp_option(listener, libc::TCP_DEFER_ACCEPT, seconds)?)
    }

    /// The value set by [`set_defer_accept`](Self::set_defer_accept), rounded up by the kernel.
    pub fn defer_accept(&self) -> Result<Option<Duration>> {
        let seconds = tcp_option(self.socket().as_fd(), libc::TCP_DEFER_ACCEPT)?;
        let seconds = seconds.max(0).cast_unsigned();
        Ok((seconds > 0).then(|| Duration::from_secs(seconds.into())))
    }

    /// Takes data that a client sends along with its request for a connection (`TCP_FASTOPEN`, RFC
    /// 7413): for at most `pending` such connections at a time, which are accepted before the
    /// client has proven its address. Zero, the default, is off.
    ///
    /// A client saves a round trip by it, and may have the same data delivered twice: for requests
    /// that may be repeated. The kernel takes part if bit 2 of `net.ipv4.tcp_fastopen` is set,
    /// which by default it is not; otherwise the option has no effect. More than
    /// `net.core.somaxconn` is cut to that.
    pub fn set_fastopen(&self, pending: u32) -> Result<()> {
        let pending = pending.min(i32::MAX as u32).cast_signed();
        let listener = self.socket().as_fd();
        Ok(set_tcp_option(listener, libc::TCP_FASTOPEN, pending)?)
    }

    /// The value set by [`set_fastopen`](Self::set_fastopen).
    pub fn fastopen(&self) -> Result<u32> {
        let pending = tcp_option(self.socket().as_fd(), libc::TCP_FASTOPEN)?;
        Ok(pending.max(0).cast_unsigned())
    }

    socket_options!();
    internet_options!();
    bound_options!();
}

/// The error that `what` is zero, which the kernel would take for none at all.
fn zero(what: &str) -> GlommioError<()> {
    let text = format!("{what} of zero: use `None` for no limit");
    io::Error::new(io::ErrorKind::InvalidInput, text).into()
}
