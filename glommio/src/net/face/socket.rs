//! What the public types of all sockets have in common.

/// The conversions between a socket and its descriptor. Expects a private `into_fd`.
macro_rules! descriptor_face {
    (
        $Socket:ident,
        borrowed: [$($generics:tt)*] $Borrowed:ty,
        field: $field:ident,
        takes: $what:literal,
        $(into_raw_fd: $into_raw_fd:literal,)?
        std: $Std:ty $(,)?
    ) => {
        #[doc = concat!("Takes ", $what, ", blocking or not.")]
        ///
        /// # Panics
        ///
        /// Panics if no executor runs on this thread.
        impl From<socket2::Socket> for $Socket {
            fn from(socket: socket2::Socket) -> Self {
                $Socket::new(socket)
            }
        }

        /// Takes a socket of the standard library, blocking or not. Its timeouts are not taken over.
        ///
        /// # Panics
        ///
        /// Panics if no executor runs on this thread.
        impl From<$Std> for $Socket {
            fn from(socket: $Std) -> Self {
                $Socket::new(socket2::Socket::from(socket))
            }
        }

        #[doc = concat!("Takes ", $what, ", blocking or not.")]
        ///
        /// # Panics
        ///
        /// Panics if no executor runs on this thread.
        #[allow(unsafe_code, reason = "the trait's only method is unsafe")]
        impl std::os::fd::FromRawFd for $Socket {
            unsafe fn from_raw_fd(fd: std::os::fd::RawFd) -> Self {
                // SAFETY: the caller passes ownership of an open descriptor, as the trait demands.
                $Socket::new(unsafe { socket2::Socket::from_raw_fd(fd) })
            }
        }

        impl<$($generics)*> std::os::fd::AsRawFd for $Borrowed {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.$field.as_raw_fd()
            }
        }

        impl<$($generics)*> std::os::fd::AsFd for $Borrowed {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.$field.as_fd()
            }
        }

        /// Takes the socket from this executor: nothing is in flight for it any more, and it stays open.
        $(#[doc = $into_raw_fd])?
        impl std::os::fd::IntoRawFd for $Socket {
            fn into_raw_fd(self) -> std::os::fd::RawFd {
                self.into_fd().into_raw_fd()
            }
        }
    };
}
pub(in crate::net) use descriptor_face;

/// Read and write timeouts of a socket, each with what its users should know.
macro_rules! timeouts_face {
    (
        [$($generics:tt)*] $Socket:ty,
        field: $field:ident,
        $(#[$read:meta])*
        read,
        $(#[$write:meta])*
        write $(,)?
    ) => {
        impl<$($generics)*> $Socket {
            $(#[$read])*
            ///
            /// # Errors
            ///
            /// Kind `InvalidInput`, `EINVAL`, if `dur` is zero; the timeout stays as it was.
            pub fn set_read_timeout(&self, dur: Option<std::time::Duration>) -> Result<()> {
                Ok(self.$field.set_read_timeout(dur)?)
            }

            $(#[$write])*
            ///
            /// # Errors
            ///
            /// Kind `InvalidInput`, `EINVAL`, if `dur` is zero; the timeout stays as it was.
            pub fn set_write_timeout(&self, dur: Option<std::time::Duration>) -> Result<()> {
                Ok(self.$field.set_write_timeout(dur)?)
            }

            /// What was set by [`set_read_timeout`](Self::set_read_timeout).
            pub fn read_timeout(&self) -> Option<std::time::Duration> {
                self.$field.read_timeout()
            }

            /// What was set by [`set_write_timeout`](Self::set_write_timeout).
            pub fn write_timeout(&self) -> Option<std::time::Duration> {
                self.$field.write_timeout()
            }
        }
    };
}
pub(in crate::net) use timeouts_face;

/// Both addresses of a socket, from the functions of those names in the module `addresses`.
macro_rules! addresses_face {
    (
        [$($generics:tt)*] $Socket:ty,
        addresses: $addresses:ident,
        Address: $Address:ty $(,)?
    ) => {
        impl<$($generics)*> $Socket {
            /// The address of the peer.
            ///
            /// # Errors
            ///
            /// Kind `NotConnected` if there is none (any more).
            pub fn peer_addr(&self) -> Result<$Address> {
                Ok($addresses::peer_addr(self.socket())?)
            }

            /// The address of this socket.
            ///
            /// # Errors
            ///
            /// What `getsockname(2)` gives.
            pub fn local_addr(&self) -> Result<$Address> {
                Ok($addresses::local_addr(self.socket())?)
            }
        }
    };
}
pub(in crate::net) use addresses_face;
