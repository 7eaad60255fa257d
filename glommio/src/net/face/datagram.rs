//! The public methods of a datagram socket.

/// A datagram socket: `struct D { datagram: Datagram, buffer_size: usize, .. }`, with a `new`.
/// `Sender` is the address of a datagram's sender.
macro_rules! datagram_face {
    (
        $Socket:ident,
        addresses: $addresses:ident,
        Address: $Address:ty,
        Sender: $Sender:ty,
        takes: $what:literal,
        std: $Std:ty $(,)?
    ) => {
        const _: () = {
            use std::fmt;
            use std::os::fd::{AsRawFd, OwnedFd};

            use $crate::net::{Result, nonblocking};

            impl $Socket {
                /// Sets what [`buffer_size`](Self::buffer_size) returns. It has no effect: how much
                /// of a datagram is received depends on the caller's buffer alone.
                pub fn set_buffer_size(&mut self, buffer_size: usize) {
                    self.buffer_size = buffer_size;
                }

                /// What was set by [`set_buffer_size`](Self::set_buffer_size), in bytes; 8192 at
                /// first.
                pub fn buffer_size(&mut self) -> usize {
                    self.buffer_size
                }

                /// As [`peek`](Self::peek), with or without a peer, and also returns the sender.
                /// The read timeout applies.
                ///
                /// # Errors
                ///
                /// As [`recv_from`](Self::recv_from).
                ///
                /// # Cancel safety
                ///
                /// Nothing is lost when it is dropped.
                pub async fn peek_from(&self, buf: &mut [u8]) -> Result<(usize, $Sender)> {
                    let peek = |fd| nonblocking::peek_from(fd, buf);
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
                pub async fn recv_from(&self, buf: &mut [u8]) -> Result<(usize, $Sender)> {
                    let receive = |fd| nonblocking::receive_from(fd, buf);
                    Ok(self.datagram.read(receive).await?)
                }

                pub(super) fn socket(&self) -> &socket2::Socket {
                    self.datagram.socket()
                }

                fn into_fd(self) -> OwnedFd {
                    self.datagram.into_fd()
                }
            }

            $crate::net::face::timeouts_face!(
                [] $Socket,
                field: datagram,
                /// Sets how long [`recv`](Self::recv), [`recv_from`](Self::recv_from) and
                /// [`peek_from`](Self::peek_from) may wait, each call from when it finds nothing.
                /// `None`, the default, is for ever. A call that waits too long ends with kind
                /// `TimedOut`, `ETIMEDOUT`; the socket remains usable. Each call has a time of its own: one
                /// that was dropped leaves nothing to the next. Calls that wait already keep the
                /// timeout they began with.
                read,
                /// Sets how long [`send`](Self::send) and [`send_to`](Self::send_to) may wait. As
                /// [`set_read_timeout`](Self::set_read_timeout) otherwise.
                write,
            );

            $crate::net::face::addresses_face!(
                [] $Socket,
                addresses: $addresses,
                Address: $Address,
            );

            impl fmt::Debug for $Socket {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(stringify!($Socket))
                        .field("fd", &self.as_raw_fd())
                        .field("read_timeout", &self.read_timeout())
                        .field("write_timeout", &self.write_timeout())
                        .finish_non_exhaustive()
                }
            }

            $crate::net::face::descriptor_face!(
                $Socket,
                borrowed: [] $Socket,
                field: datagram,
                takes: $what,
                std: $Std,
            );
        };
    };
}
pub(in crate::net) use datagram_face;
