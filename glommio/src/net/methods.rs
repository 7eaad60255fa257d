//! Methods that the public types of several address families have, written once, as macros to be
//! called inside an `impl`. They only call the generic [`Stream`](super::stream::Stream) and
//! [`Datagram`](super::datagram::Datagram).
//!
//! The traits are implemented in the file of each type; [`stream_impls`] and [`descriptor_impls`] add the bodies.

/// Methods of a stream without a receive buffer.
macro_rules! unbuffered_methods {
    ($Socket:ident, $Accepted:ident) => {
        /// Adds a receive buffer of 8192 bytes.
        pub fn buffered(self) -> $Socket<$crate::net::Preallocated> {
            self.buffered_with($crate::net::Preallocated::default())
        }

        /// Adds `buf` as the receive buffer.
        pub fn buffered_with<B: $crate::net::Buffered>(self, buf: B) -> $Socket<B> {
            $Socket {
                stream: self.stream.with_buffer(buf),
            }
        }

        /// Takes the connection from this executor, for another one to
        #[doc = concat!("[bind](", stringify!($Accepted), "::bind_to_executor).")]
        /// No byte is lost. Timeouts are forgotten.
        ///
        /// A stream with a receive buffer has no such method: what it holds would be lost.
        /// [`detach`](Self::detach) moves both along.
        pub fn into_accepted(self) -> $Accepted {
            $Accepted { fd: self.into_fd() }
        }

        fn new(socket: $crate::sys::socket::Socket) -> Self {
            $Socket {
                stream: $crate::net::stream::Stream::new(socket, $crate::net::NonBuffered),
            }
        }
    };
}
pub(super) use unbuffered_methods;

/// Methods of a stream, `struct S<B> { stream: Stream<B> }`.
macro_rules! stream_methods {
    ($Detached:ident) => {
        /// Takes the connection from this executor, for another one to
        #[doc = concat!("[attach](", stringify!($Detached), "::attach).")]
        ///
        /// The receive buffer with its unread bytes, the timeouts and the options of the socket move
        /// along. Bytes that arrive meanwhile wait in the socket, so none is lost and none is read twice.
        ///
        /// A read or write that waits borrows the stream, and so has ended or was dropped before. What
        /// a dropped one left in flight is cancelled; it only reports that the socket is ready, and
        /// takes no data. A time limit under way is forgotten: the first wait on the other executor
        /// has the full time.
        pub fn detach(self) -> $Detached<B> {
            $Detached {
                detached: self.stream.detach(),
            }
        }

        /// Shuts down one or both directions of the connection. Does not suspend.
        ///
        /// # Errors
        ///
        /// Kind `NotConnected` if TCP has no connection (any more); other errors are ignored, and a
        /// Unix socket gives none.
        ///
        /// # Cancel safety
        ///
        /// Nothing has happened: the poll that does it is ready.
        pub async fn shutdown(&self, how: std::net::Shutdown) -> $crate::net::Result<()> {
            $crate::reactor::budget::consume().await;
            Ok(self.stream.shutdown(how)?)
        }

        /// As [`shutdown`](Self::shutdown), for callers that keep no future. Never pending.
        pub fn poll_shutdown(
            &self,
            cx: &mut std::task::Context<'_>,
            how: std::net::Shutdown,
        ) -> std::task::Poll<$crate::net::Result<()>> {
            $crate::reactor::budget::poll_consume(cx).map(|()| Ok(self.stream.shutdown(how)?))
        }

        /// Reads without consuming: the same bytes are read again. Returns how many there are in
        /// `buf`; zero at the end of the stream, or for an empty `buf`.
        ///
        /// Waits, for as long as it takes, only if nothing has come. May go on during reads and
        /// writes of other tasks.
        ///
        /// # Errors
        ///
        /// What `recv(2)` gives.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost when it is dropped.
        pub async fn peek(&self, buf: &mut [u8]) -> $crate::net::Result<usize> {
            Ok(self.stream.peek(buf).await?)
        }

        pub(super) fn socket(&self) -> &$crate::sys::socket::Socket {
            self.stream.socket()
        }

        fn into_fd(self) -> std::os::fd::OwnedFd {
            self.stream.into_fd()
        }

        $crate::net::methods::timeout_methods! {
            stream:
            /// Sets how long a read may wait. `None`, the default, is forever.
            ///
            /// The time counts from when the read finds nothing to return; a read that finds data
            /// ignores it. One that waits too long ends with kind `TimedOut` and the text
            /// `Operation timed out`. Nothing is lost by that, and the next read has the full time
            /// again.
            ///
            /// The stream is not told when a read is dropped. A read that its task polls each time
            /// that the task is polled ends after exactly this time, whatever else wakes the task.
            /// Once the task has been polled without polling the read, or has slept since it polled
            /// the read, the read counts as given up, and the next one has the full time. A read
            /// that is dropped and begun anew before that continues the wait and has what is left
            /// of the time; so a loop that reads anew with each tick of a timer notices a silent
            /// peer.
            ///
            /// A combinator such as `FuturesUnordered` polls its futures by wakers of its own, and
            /// not each time that the task is polled. A read that is polled with such a waker keeps
            /// its deadline until it ends, or until the deadline has passed, all tasks that were
            /// woken by then have run, and the read was not polled.
            ///
            /// A read that waits already gets the new timeout, from now. [`peek`](Self::peek) has
            /// none.
            read,
            /// Sets how long a write may wait. As [`set_read_timeout`](Self::set_read_timeout)
            /// otherwise.
            write
        }
    };
}
pub(super) use stream_methods;

/// What becomes a stream on another executor.
macro_rules! moves_between_executors {
    ($Stream:ident, $Accepted:ident, $Detached:ident) => {
        impl $Accepted {
            /// Makes it a stream of the executor that runs on this thread.
            ///
            /// # Panics
            ///
            /// Panics if no executor runs on this thread.
            pub fn bind_to_executor(self) -> $Stream {
                $Stream::new(self.fd.into())
            }
        }

        impl<B: $crate::net::RxBuf> $Detached<B> {
            /// Makes it a stream of the executor that runs on this thread, with its buffer and timeouts.
            ///
            /// # Panics
            ///
            /// Panics if no executor runs on this thread.
            pub fn attach(self) -> $Stream<B> {
                $Stream {
                    stream: $crate::net::stream::Stream::attach(self.detached),
                }
            }
        }
    };
}
pub(super) use moves_between_executors;

/// Methods of a datagram socket, `struct D { datagram: Datagram, buffer_size: usize, .. }`.
/// `Sender` is the address of a datagram's sender.
macro_rules! datagram_methods {
    (Sender: $Sender:ty) => {
        /// Sets what [`buffer_size`](Self::buffer_size) returns. It has no effect: how much of a
        /// datagram is received depends on the caller's buffer alone.
        pub fn set_buffer_size(&mut self, buffer_size: usize) {
            self.buffer_size = buffer_size;
        }

        /// The value set by [`set_buffer_size`](Self::set_buffer_size), in bytes; 8192 at first.
        pub fn buffer_size(&mut self) -> usize {
            self.buffer_size
        }

        /// As [`peek`](Self::peek), with or without a peer, and also returns the sender. The read
        /// timeout applies.
        ///
        /// # Errors
        ///
        /// As [`recv_from`](Self::recv_from).
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost when it is dropped.
        pub async fn peek_from(&self, buf: &mut [u8]) -> $crate::net::Result<(usize, $Sender)> {
            let peek = |fd| $crate::net::datagram::peek_from(fd, buf);
            Ok(self.datagram.read(peek).await?)
        }

        /// As [`recv`](Self::recv), with or without a peer, and also returns the sender.
        ///
        /// # Errors
        ///
        /// As [`recv`](Self::recv), but for `NotConnected`.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost when it is dropped.
        pub async fn recv_from(&self, buf: &mut [u8]) -> $crate::net::Result<(usize, $Sender)> {
            let receive = |fd| $crate::net::datagram::receive_from(fd, buf);
            Ok(self.datagram.read(receive).await?)
        }

        pub(super) fn socket(&self) -> &$crate::sys::socket::Socket {
            self.datagram.socket()
        }

        fn into_fd(self) -> std::os::fd::OwnedFd {
            self.datagram.into_fd()
        }

        $crate::net::methods::timeout_methods! {
            datagram:
            /// Sets how long [`recv`](Self::recv), [`recv_from`](Self::recv_from) and
            /// [`peek_from`](Self::peek_from) may wait, each call from when it finds nothing.
            /// `None`, the default, is forever. A call that waits too long ends with kind
            /// `TimedOut`, `ETIMEDOUT`; the socket remains usable. Each call has a time of its own:
            /// one that was dropped leaves nothing to the next. Calls that wait already keep the
            /// timeout they began with.
            read,
            /// Sets how long [`send`](Self::send) and [`send_to`](Self::send_to) may wait. As
            /// [`set_read_timeout`](Self::set_read_timeout) otherwise.
            write
        }
    };
}
pub(super) use datagram_methods;

/// Read and write timeouts of a socket, each with what its users should know.
macro_rules! timeout_methods {
    ($field:ident: $(#[$read:meta])* read, $(#[$write:meta])* write) => {
        $(#[$read])*
        ///
        /// # Errors
        ///
        /// Kind `InvalidInput`, `EINVAL`, if `dur` is zero; the timeout stays as it was.
        pub fn set_read_timeout(&self, dur: Option<std::time::Duration>) -> $crate::net::Result<()> {
            Ok(self.$field.set_read_timeout(dur)?)
        }

        $(#[$write])*
        ///
        /// # Errors
        ///
        /// Kind `InvalidInput`, `EINVAL`, if `dur` is zero; the timeout stays as it was.
        pub fn set_write_timeout(&self, dur: Option<std::time::Duration>) -> $crate::net::Result<()> {
            Ok(self.$field.set_write_timeout(dur)?)
        }

        /// The value set by [`set_read_timeout`](Self::set_read_timeout).
        pub fn read_timeout(&self) -> Option<std::time::Duration> {
            self.$field.read_timeout()
        }

        /// The value set by [`set_write_timeout`](Self::set_write_timeout).
        pub fn write_timeout(&self) -> Option<std::time::Duration> {
            self.$field.write_timeout()
        }
    };
}
pub(super) use timeout_methods;

/// Both addresses of a socket, from the functions of those names in the module `addresses`.
macro_rules! address_methods {
    ($addresses:ident, $Address:ty) => {
        /// The address of the peer.
        ///
        /// # Errors
        ///
        /// Kind `NotConnected` if there is none (any more).
        pub fn peer_addr(&self) -> $crate::net::Result<$Address> {
            Ok($addresses::peer_addr(self.socket())?)
        }

        /// The address of this socket.
        ///
        /// # Errors
        ///
        /// What `getsockname(2)` gives.
        pub fn local_addr(&self) -> $crate::net::Result<$Address> {
            Ok($addresses::local_addr(self.socket())?)
        }
    };
}
pub(super) use address_methods;

/// The bodies of what all streams are.
macro_rules! stream_impls {
    (
        impl<$B:ident: RxBuf + Unpin> AsyncRead for $Stream:ident<$_B1:ident>;
        impl<$_C:ident: Buffered + Unpin> AsyncBufRead for $_S2:ident<$_B2:ident>;
        impl<$_D:ident: RxBuf + Unpin> AsyncWrite for $_S3:ident<$_B3:ident>;
        impl<$_E:ident: RxBuf + Debug> Debug for $_S4:ident<$_B4:ident>;
    ) => {
        impl<$B: $crate::net::RxBuf + Unpin> futures_io::AsyncRead for $Stream<$B> {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.get_mut().stream.poll_read(cx, buf)
            }

            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &mut [std::io::IoSliceMut<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.get_mut().stream.poll_read_vectored(cx, bufs)
            }
        }

        impl<$B: $crate::net::Buffered + Unpin> futures_io::AsyncBufRead for $Stream<$B> {
            fn poll_fill_buf(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<&[u8]>> {
                self.get_mut().stream.poll_fill_buf(cx)
            }

            fn consume(self: std::pin::Pin<&mut Self>, amt: usize) {
                self.get_mut().stream.consume(amt);
            }
        }

        /// `flush` has nothing to do. `close` sends what was written and the end of the stream; the
        /// connection stays open for reading.
        impl<$B: $crate::net::RxBuf + Unpin> futures_io::AsyncWrite for $Stream<$B> {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                buf: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.get_mut().stream.poll_write(cx, buf)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                bufs: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.get_mut().stream.poll_write_vectored(cx, bufs)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                $crate::reactor::budget::poll_consume(cx).map(Ok)
            }

            fn poll_close(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                $crate::reactor::budget::poll_consume(cx)
                    .map(|()| self.stream.shutdown(std::net::Shutdown::Write))
            }
        }

        impl_debug! {
            [$B: $crate::net::RxBuf + std::fmt::Debug] $Stream[$B], it, debug => it.stream.describe(debug)
        }
    };
}
pub(super) use stream_impls;

/// The bodies of the conversions between a socket and its descriptor, by `new`, `socket` and
/// `into_fd` of the type.
macro_rules! descriptor_impls {
    (
        $(#[$takes:meta])*
        impl From<Socket> for $Socket:ident;
        $(#[$executor:meta])*
        impl From<$Std:ty> for $_std:ident;
        impl FromRawFd for $_raw:ident;
        impl$(<$B:ident: $Buf:ident>)? AsRawFd for $Borrowed:ty;
        impl$(<$_B:ident: $_Buf:ident>)? AsFd for $_borrowed:ty;
        $(#[$gives:meta])*
        impl IntoRawFd for $_into:ident;
    ) => {
        $(#[$takes])*
        ///
        $(#[$executor])*
        impl From<socket2::Socket> for $Socket {
            fn from(socket: socket2::Socket) -> Self {
                $Socket::of_fd(std::os::fd::OwnedFd::from(socket))
            }
        }

        /// Takes a socket of the standard library, blocking or not. Its timeouts are not taken
        /// over.
        ///
        $(#[$executor])*
        impl From<$Std> for $Socket {
            fn from(socket: $Std) -> Self {
                $Socket::of_fd(std::os::fd::OwnedFd::from(socket))
            }
        }

        $(#[$takes])*
        ///
        $(#[$executor])*
        #[allow(unsafe_code, reason = "the trait's only method is unsafe")]
        impl std::os::fd::FromRawFd for $Socket {
            unsafe fn from_raw_fd(fd: std::os::fd::RawFd) -> Self {
                // SAFETY: the caller passes ownership of an open descriptor, as the trait demands.
                $Socket::of_fd(unsafe { std::os::fd::OwnedFd::from_raw_fd(fd) })
            }
        }

        impl $Socket {
            fn of_fd(fd: std::os::fd::OwnedFd) -> Self {
                $Socket::new($crate::sys::socket::Socket::from(fd))
            }
        }

        impl$(<$B: $Buf>)? std::os::fd::AsRawFd for $Borrowed {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.socket().as_raw_fd()
            }
        }

        impl$(<$B: $Buf>)? std::os::fd::AsFd for $Borrowed {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.socket().as_fd()
            }
        }

        $(#[$gives])*
        impl std::os::fd::IntoRawFd for $Socket {
            fn into_raw_fd(self) -> std::os::fd::RawFd {
                self.into_fd().into_raw_fd()
            }
        }
    };
}
pub(super) use descriptor_impls;
