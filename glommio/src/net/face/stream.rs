//! The public methods of a stream.

/// A stream: `struct S<B: RxBuf> { stream: Stream<B> }`.
macro_rules! stream_face {
    (
        $Socket:ident,
        accepted: $Accepted:ident,
        addresses: $addresses:ident,
        Address: $Address:ty,
        std: $Std:ty $(,)?
    ) => {
        const _: () = {
            use std::fmt;
            use std::io::{self, IoSlice, IoSliceMut};
            use std::net::Shutdown;
            use std::os::fd::{AsRawFd, OwnedFd};
            use std::pin::Pin;
            use std::task::{Context, Poll};

            use futures_io::{AsyncBufRead, AsyncRead, AsyncWrite};
            use $crate::net::stream::Stream;
            use $crate::net::{Buffered, NonBuffered, Preallocated, Result, RxBuf};

            impl $Socket {
                /// Adds a receive buffer of 8192 bytes.
                pub fn buffered(self) -> $Socket<Preallocated> {
                    self.buffered_with(Preallocated::default())
                }

                /// Adds `buf` as the receive buffer.
                pub fn buffered_with<B: Buffered>(self, buf: B) -> $Socket<B> {
                    $Socket {
                        stream: self.stream.with_buffer(buf),
                    }
                }

                /// Takes the connection from this executor, for another one to
                #[doc = concat!("[bind](", stringify!($Accepted), "::bind_to_executor).")]
                /// No byte is lost. Timeouts are forgotten.
                ///
                /// A stream with a receive buffer has no such method: what it holds would be lost.
                pub fn into_accepted(self) -> $Accepted {
                    $Accepted::new(self.into_fd())
                }
            }

            impl<B: RxBuf> $Socket<B> {
                /// Shuts down one or both directions of the connection. Does not suspend.
                ///
                /// # Errors
                ///
                /// Kind `NotConnected` if TCP has no connection (any more); other errors are
                /// ignored, and a Unix socket gives none.
                ///
                /// # Cancel safety
                ///
                /// It is done at the first poll.
                pub async fn shutdown(&self, how: Shutdown) -> Result<()> {
                    Ok(self.stream.shutdown(how)?)
                }

                /// As [`shutdown`](Self::shutdown), for callers that keep no future. Never pending.
                ///
                /// # Errors
                ///
                /// As [`shutdown`](Self::shutdown).
                pub fn poll_shutdown(
                    &self,
                    _cx: &mut Context<'_>,
                    how: Shutdown,
                ) -> Poll<Result<()>> {
                    Poll::Ready(self.stream.shutdown(how).map_err(Into::into))
                }

                /// Reads without consuming: the same bytes are read again. Returns how many there
                /// are in `buf`; zero at the end of the stream, or for an empty `buf`.
                ///
                /// Waits, for as long as it takes, only if nothing has come. May go on beside reads
                /// and writes of other tasks.
                ///
                /// # Errors
                ///
                /// What `recv(2)` gives.
                ///
                /// # Cancel safety
                ///
                /// Nothing is lost when it is dropped.
                pub async fn peek(&self, buf: &mut [u8]) -> Result<usize> {
                    Ok(self.stream.peek(buf).await?)
                }

                pub(super) fn socket(&self) -> &socket2::Socket {
                    self.stream.socket()
                }
            }

            $crate::net::face::timeouts_face!(
                [B: RxBuf] $Socket<B>,
                field: stream,
                /// Sets how long a read may wait. `None`, the default, is for ever.
                ///
                /// The time counts from when the read finds nothing to return; a read that finds data
                /// ignores it. One that waits too long ends with kind `TimedOut`
                /// and the text `Operation timed out`. Nothing is lost by that, and the next read has
                /// the full time again.
                ///
                /// The stream is not told when a read is dropped. A read that its task polls each time that
                /// the task is polled ends after exactly this time, whatever else wakes the task. Once
                /// the task has been polled without polling the read, or has slept since it polled the
                /// read, the read counts as given up, and the next one has the full time. A read that is dropped and begun anew before that continues
                /// the wait and has what is left of the time; so a loop that reads anew beside each
                /// tick of a timer notices a silent peer.
                ///
                /// A combinator such as `FuturesUnordered` polls its futures by wakers of its own, and not
                /// each time that the task is polled. A read that is polled with such a waker keeps its
                /// deadline until it ends, or until the deadline has passed, all tasks that were woken by
                /// then have run, and the read was not polled.
                ///
                /// A read that waits already gets the new timeout, from now. [`peek`](Self::peek) has
                /// none.
                read,
                /// Sets how long a write may wait. As [`set_read_timeout`](Self::set_read_timeout)
                /// otherwise.
                write,
            );

            $crate::net::face::addresses_face!(
                [B: RxBuf] $Socket<B>,
                addresses: $addresses,
                Address: $Address,
            );

            impl<B: RxBuf + Unpin> AsyncRead for $Socket<B> {
                fn poll_read(
                    self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                    buf: &mut [u8],
                ) -> Poll<io::Result<usize>> {
                    self.get_mut().stream.poll_read(cx, buf)
                }

                fn poll_read_vectored(
                    self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                    bufs: &mut [IoSliceMut<'_>],
                ) -> Poll<io::Result<usize>> {
                    self.get_mut().stream.poll_read_vectored(cx, bufs)
                }
            }

            impl<B: Buffered + Unpin> AsyncBufRead for $Socket<B> {
                fn poll_fill_buf(
                    self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                ) -> Poll<io::Result<&[u8]>> {
                    self.get_mut().stream.poll_fill_buf(cx)
                }

                fn consume(self: Pin<&mut Self>, amt: usize) {
                    self.get_mut().stream.consume(amt);
                }
            }

            /// `flush` has nothing to do. `close` sends what was written and the end of the stream;
            /// the connection stays open for reading.
            impl<B: RxBuf + Unpin> AsyncWrite for $Socket<B> {
                fn poll_write(
                    self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                    buf: &[u8],
                ) -> Poll<io::Result<usize>> {
                    self.get_mut().stream.poll_write(cx, buf)
                }

                fn poll_write_vectored(
                    self: Pin<&mut Self>,
                    cx: &mut Context<'_>,
                    bufs: &[IoSlice<'_>],
                ) -> Poll<io::Result<usize>> {
                    self.get_mut().stream.poll_write_vectored(cx, bufs)
                }

                fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                    Poll::Ready(Ok(()))
                }

                fn poll_close(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                    Poll::Ready(self.stream.shutdown(Shutdown::Write))
                }
            }

            impl $Socket {
                fn new(socket: socket2::Socket) -> Self {
                    $Socket {
                        stream: Stream::new(socket, NonBuffered),
                    }
                }

                fn into_fd(self) -> OwnedFd {
                    self.stream.into_fd()
                }
            }

            impl<B: RxBuf + fmt::Debug> fmt::Debug for $Socket<B> {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(stringify!($Socket))
                        .field("fd", &self.as_raw_fd())
                        .field("buffer", self.stream.buffer())
                        .field("read_timeout", &self.read_timeout())
                        .field("write_timeout", &self.write_timeout())
                        .finish_non_exhaustive()
                }
            }

            $crate::net::face::descriptor_face!(
                $Socket,
                borrowed: [B: RxBuf] $Socket<B>,
                field: stream,
                takes: "a connected stream socket",
                std: $Std,
            );
        };
    };
}
pub(in crate::net) use stream_face;
