//! The methods that listeners of all address families have, written once, as a macro to be called inside an `impl`. They
//! only call the [`Acceptor`](super::accept_queue::Acceptor).

/// Methods of a listener, `struct L { acceptor: Acceptor, socket: Socket }`, in this order: what is
/// in flight has to go before the descriptor is closed.
macro_rules! listener_methods {
    ($Stream:ident, $Accepted:ident, $addresses:ident, $Address:ty, $Std:ty) => {
        /// The next connection, for whichever executor
        #[doc = concat!("[binds](", stringify!($Accepted), "::bind_to_executor) it.")]
        /// Any number of tasks may accept at a time, and each gets a connection of its own.
        ///
        /// # Errors
        ///
        /// What `accept(2)` gives, for instance `EMFILE`. The listener remains usable. The error
        /// that no descriptor is left is returned when a client connects; until then, the call
        /// waits.
        ///
        /// # Cancel safety
        ///
        /// Nothing is lost when it is dropped: a connection that was about to be returned is left
        /// to the next call.
        pub async fn shared_accept(&self) -> $crate::net::Result<$Accepted> {
            let fd = self.acceptor.accept().await?;
            Ok($Accepted { fd })
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
        pub async fn accept(&self) -> $crate::net::Result<$Stream> {
            Ok(self.shared_accept().await?.bind_to_executor())
        }

        /// The next connection as soon as there is a place for it in `limit`, with the place, to be
        /// dropped with the connection. Until then it is left in the backlog of the kernel.
        ///
        /// The place is taken when a client is there: calls that wait for one leave the places to other
        /// listeners.
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
        /// As [`shared_accept`](Self::shared_accept). The place is given back.
        pub async fn accept_within(
            &self,
            limit: &$crate::net::ConnectionLimit,
        ) -> $crate::net::Result<($Stream, $crate::net::ConnectionPermit)> {
            let (fd, place) = limit.accept(&self.acceptor).await?;
            Ok(($Accepted { fd }.bind_to_executor(), place))
        }

        /// As [`shared_accept`](Self::shared_accept), for callers that keep no future. The task is
        /// woken when there may be a connection; any number of tasks may poll.
        pub fn poll_shared_accept(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<$crate::net::Result<$Accepted>> {
            let accepted = self.acceptor.poll_accept(cx);
            accepted.map(|fd| Ok($Accepted { fd: fd? }))
        }

        /// As [`accept`](Self::accept), for callers that keep no future. The task is woken when
        /// there may be a connection; any number of tasks may poll.
        ///
        /// # Errors
        ///
        /// As [`shared_accept`](Self::shared_accept).
        ///
        /// # Panics
        ///
        /// Panics if no executor runs on this thread.
        pub fn poll_accept(
            &self,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<$crate::net::Result<$Stream>> {
            let accepted = self.poll_shared_accept(cx);
            accepted.map(|accepted| Ok(accepted?.bind_to_executor()))
        }

        /// All connections from now on, as a stream that never ends.
        ///
        /// Errors come as items, after which it goes on: a consumer that ignores, say, `EMFILE` is
        /// given it again and again.
        ///
        /// # Cancel safety
        ///
        /// No connection is lost when the stream or the future of its next item is dropped: the next
        /// call gets it.
        pub fn incoming(
            &self,
        ) -> impl futures_core::Stream<Item = $crate::net::Result<$Stream>> + Unpin + '_ {
            $crate::net::incoming::Incoming::new(&self.acceptor)
        }

        /// Stops accepting, and returns the listening socket along with the connections that it has
        /// accepted and that no call has returned yet.
        ///
        /// The kernel accepts for calls of [`accept`](Self::accept) that wait, and some may have been dropped
        /// since. To hand the socket over, for instance to another process, without closing such a connection,
        /// call this; [`into_raw_fd`](std::os::fd::IntoRawFd::into_raw_fd) closes it. Clients that have not
        /// been accepted stay in the backlog of the socket, and who waits for one there, also in another process, is told.
        ///
        /// With [epoll](crate::Driver) the socket is in non-blocking mode if the executor has waited for a
        /// connection, also for others that own it: call `set_nonblocking(false)` before a blocking accept.
        ///
        /// Suspends only while the kernel is accepting for this listener: until it has stopped.
        ///
        /// # Cancel safety
        ///
        /// Dropped before it is done, the listener and its connections are closed.
        ///
        /// # Examples
        ///
        /// ```
        /// use glommio::{LocalExecutor, net::TcpListener};
        ///
        /// LocalExecutor::default().run(async {
        ///     let listener = TcpListener::bind("127.0.0.1:0")?;
        ///     let client = std::net::TcpStream::connect(listener.local_addr()?)?;
        ///
        ///     let (socket, accepted) = listener.into_parts().await;
        ///     let served = match accepted.first() {
        ///         Some(connection) => connection.peer_addr()?,
        ///         None => socket.accept()?.1,
        ///     };
        ///     assert_eq!(served, client.local_addr()?);
        ///     Ok::<_, glommio::GlommioError<()>>(())
        /// })?;
        /// # Ok::<_, glommio::GlommioError<()>>(())
        /// ```
        pub async fn into_parts(self) -> ($Std, Vec<$Accepted>) {
            let accepted = self.acceptor.stop().await;
            drop(self.acceptor);
            let accepted = accepted.into_iter().map(|fd| $Accepted { fd });
            (self.socket.into(), accepted.collect())
        }

        /// The address that it listens on.
        ///
        /// # Errors
        ///
        /// What `getsockname(2)` gives.
        pub fn local_addr(&self) -> $crate::net::Result<$Address> {
            Ok($addresses::local_addr(&self.socket)?)
        }

        /// `socket` is bound and listening.
        fn new(socket: $crate::sys::socket::Socket) -> Self {
            let reactor = $crate::reactor::current::current();
            let listener = std::os::fd::AsRawFd::as_raw_fd(&socket);
            let acceptor = $crate::net::accept_queue::Acceptor::new(reactor, listener);
            Self { acceptor, socket }
        }

        pub(super) fn socket(&self) -> &$crate::sys::socket::Socket {
            &self.socket
        }

        /// Connections that were accepted and not claimed are closed.
        fn into_fd(self) -> std::os::fd::OwnedFd {
            drop(self.acceptor);
            self.socket.into()
        }
    };
}
pub(super) use listener_methods;
