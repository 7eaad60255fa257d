//! A stream between two executors, whatever its address family.

#![forbid(unsafe_code)]

use std::fmt;
use std::time::Duration;

use super::buffer::RxBuf;
use crate::sys::socket::Socket;

/// A connection with all that its stream has kept for it, without an executor.
///
/// Nothing is in flight for it. What was holds no data: operations only report readiness, and bytes
/// leave the socket in the system call of a read that returns them.
pub(super) struct Detached<B> {
    pub(super) socket: Socket,
    pub(super) buffer: B,
    pub(super) read_timeout: Option<Duration>,
    pub(super) write_timeout: Option<Duration>,
    /// See the stream's.
    pub(super) peeked_error: Option<i32>,
}

impl<B: RxBuf> Detached<B> {
    /// What users are shown of it.
    pub(super) fn describe(&self, mut socket: fmt::DebugStruct<'_, '_>) -> fmt::Result {
        (socket.field("fd", &std::os::fd::AsRawFd::as_raw_fd(&self.socket)))
            .field("unread_bytes", &self.buffer.as_bytes().len())
            .field("read_timeout", &self.read_timeout)
            .field("write_timeout", &self.write_timeout)
            .finish_non_exhaustive()
    }
}

/// What detached streams of all families have, `struct D<B> { detached: Detached<B> }`.
macro_rules! detached_methods {
    ($Detached:ident) => {
        impl<B: RxBuf> $Detached<B> {
            /// The bytes that were received into the stream's buffer and not read.
            pub fn unread(&self) -> &[u8] {
                self.detached.buffer.as_bytes()
            }

            /// The read timeout that the stream will have.
            pub fn read_timeout(&self) -> Option<std::time::Duration> {
                self.detached.read_timeout
            }

            /// The write timeout that the stream will have.
            pub fn write_timeout(&self) -> Option<std::time::Duration> {
                self.detached.write_timeout
            }
        }

        impl<B: RxBuf> std::os::fd::AsFd for $Detached<B> {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.detached.socket.as_fd()
            }
        }

        /// The bare descriptor, with the options of the socket. Unread bytes of the buffer and the
        /// timeouts are dropped.
        impl<B: RxBuf> From<$Detached<B>> for std::os::fd::OwnedFd {
            fn from(stream: $Detached<B>) -> Self {
                stream.detached.socket.into()
            }
        }

        impl_debug! { [B: RxBuf] $Detached[B], it, debug => it.detached.describe(debug) }
    };
}
pub(super) use detached_methods;
