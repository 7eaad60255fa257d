//! The public methods of a listener and of what it accepts.

/// What is accepted and belongs to no executor: `struct A { fd: OwnedFd }`.
macro_rules! accepted_face {
    ($Accepted:ident, stream: $Stream:ident $(,)?) => {
        impl $Accepted {
            pub(super) fn new(fd: std::os::fd::OwnedFd) -> Self {
                $Accepted { fd }
            }

            /// Makes it a stream of the executor that runs on this thread.
            ///
            /// # Panics
            ///
            /// Panics if no executor runs on this thread.
            pub fn bind_to_executor(self) -> $Stream {
                $Stream::from(socket2::Socket::from(self.fd))
            }
        }

        impl std::os::fd::AsFd for $Accepted {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.fd.as_fd()
            }
        }
    };
}
pub(in crate::net) use accepted_face;

/// A listener: `struct L { acceptor: Acceptor, socket: Socket }`, in this order: what is in flight
/// has to go before the descriptor is closed.
macro_rules! listener_face {
    (
        $Socket:ident,
        stream: $Stream:ident,
        accepted: $Accepted:ident,
        std: $Std:ty,
        addresses: $addresses:ident,
        Address: $Address:ty $(,)?
    ) => {
        const _: () = {
            use std::fmt;
            use std::os::fd::{AsRawFd, OwnedFd};
            use std::task::{Context, Poll};

            use $crate::net::Result;
            use $crate::net::accept_queue::Acceptor;
            use $crate::reactor::current;

            impl $Socket {
                /// The next connection, for whichever executor
                #[doc = concat!("[binds](", stringify!($Accepted), "::bind_to_executor) it.")]
                ///
                /// Any number of tasks may accept at a time, and each gets a connection of its own.
                ///
                /// # Errors
                ///
                /// What `accept(2)` gives, for instance `EMFILE`. The listener remains usable. The error that no
                /// descriptor is left is returned when a client connects; until then, the call waits.
                ///
                /// # Cancel safety
                ///
                /// Nothing is lost when it is dropped: a connection that was about to be returned is
                /// left to the next call.
                pub async fn shared_accept(&self) -> Result<$Accepted> {
                    Ok($Accepted::new(self.acceptor.accept().await?))
                }

                /// The next connection, for this executor.
                ///
                /// # Errors
                ///
                /// As [`shared_accept`](Self::shared_accept).
                ///
                /// # Panics
                ///
                /// Panics if no executor runs on this thread.
                ///
                /// # Cancel safety
                ///
                /// As [`shared_accept`](Self::shared_accept).
                pub async fn accept(&self) -> Result<$Stream> {
                    Ok(self.shared_accept().await?.bind_to_executor())
                }

                /// As [`shared_accept`](Self::shared_accept), for callers that keep no future. The
                /// task is woken when there may be a connection; any number of tasks may poll.
                ///
                /// # Errors
                ///
                /// As [`shared_accept`](Self::shared_accept).
                pub fn poll_shared_accept(&self, cx: &mut Context<'_>) -> Poll<Result<$Accepted>> {
                    self.acceptor
                        .poll_accept(cx)
                        .map(|accepted| Ok($Accepted::new(accepted?)))
                }

                /// As [`accept`](Self::accept), for callers that keep no future. The task is woken
                /// when there may be a connection; any number of tasks may poll.
                ///
                /// # Errors
                ///
                /// As [`shared_accept`](Self::shared_accept).
                ///
                /// # Panics
                ///
                /// Panics if no executor runs on this thread.
                pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Result<$Stream>> {
                    self.poll_shared_accept(cx)
                        .map(|accepted| Ok(accepted?.bind_to_executor()))
                }

                /// The address that it listens on.
                ///
                /// # Errors
                ///
                /// What `getsockname(2)` gives.
                pub fn local_addr(&self) -> Result<$Address> {
                    Ok($addresses::local_addr(&self.socket)?)
                }

                /// `socket` is bound and listening.
                fn new(socket: socket2::Socket) -> Self {
                    $Socket {
                        acceptor: Acceptor::new(current::current(), socket.as_raw_fd()),
                        socket,
                    }
                }

                pub(super) fn socket(&self) -> &socket2::Socket {
                    &self.socket
                }

                /// The socket, which accepts no more, and the connections that were accepted and not claimed.
                async fn stop(self) -> ($Std, Vec<$Accepted>) {
                    let accepted = self.acceptor.stop().await;
                    drop(self.acceptor);
                    let accepted = accepted.into_iter().map($Accepted::new);
                    (self.socket.into(), accepted.collect())
                }

                /// Connections that were accepted and not claimed are closed.
                fn into_fd(self) -> OwnedFd {
                    drop(self.acceptor);
                    OwnedFd::from(self.socket)
                }
            }

            impl fmt::Debug for $Socket {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.debug_struct(stringify!($Socket))
                        .field("fd", &self.as_raw_fd())
                        .finish_non_exhaustive()
                }
            }

            $crate::net::face::descriptor_face!(
                $Socket,
                borrowed: [] $Socket,
                field: socket,
                takes: "a stream socket that is bound and listening",
                into_raw_fd: "Connections that it has accepted and that no call has returned yet are closed; \
                    [`into_parts`](Self::into_parts) returns them.",
                std: $Std,
            );
        };
    };
}
pub(in crate::net) use listener_face;
