//! Connections: their handshake, their streams and datagrams, their end.

mod connecting;
mod state;

pub use connecting::Connecting;
pub(crate) use state::{Half, Handle, State, stopped};

use crate::{
    ConnectionError, ConnectionStats, Dir, RecvStream, SendDatagramError, SendStream, StreamId,
    VarInt,
};
use bytes::Bytes;
use quinn_proto::congestion::Controller;
use std::any::Any;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A connection whose handshake is over.
///
/// Clones are the same connection. When the last of them and of its streams is dropped it is closed,
/// with code 0: what was written and not received by then is lost. To be sure of it, wait for an
/// answer, or for [`SendStream::stopped`].
#[derive(Clone)]
pub struct Connection(Rc<Handle>);

impl Connection {
    fn new(handle: Rc<Handle>) -> Connection {
        Connection(handle)
    }

    fn state(&self) -> &Rc<State> {
        self.0.state()
    }

    /// Opens a stream that this side writes, and the other reads. The peer hears of it with its
    /// first bytes, or its end.
    ///
    /// Waits while there are as many streams as the peer allows at a time.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has opened none.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let id = self.open(Dir::Uni).await?;
        Ok(SendStream::new(Rc::clone(&self.0), id))
    }

    /// Opens a stream in both directions. As [`open_uni`](Self::open_uni) otherwise.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has opened none.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(Dir::Bi).await?;
        Ok(self.both(id))
    }

    /// Waits for the next stream that the peer opens for this side to read.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. Any number of tasks may wait.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = self.accept(Dir::Uni).await?;
        Ok(RecvStream::new(Rc::clone(&self.0), id))
    }

    /// Waits for the next stream that the peer opens in both directions.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. Any number of tasks may wait.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Dir::Bi).await?;
        Ok(self.both(id))
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        let send = SendStream::new(Rc::clone(&self.0), id);
        (send, RecvStream::new(Rc::clone(&self.0), id))
    }

    async fn open(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        let waiters = self.state().waiters.open(dir);
        waiters.wait_until(|| self.try_open(dir)).await
    }

    fn try_open(&self, dir: Dir) -> Option<Result<StreamId, ConnectionError>> {
        let state = self.state();
        match state.check() {
            Err(error) => Some(Err(error)),
            Ok(()) => state.proto.borrow_mut().streams().open(dir).map(Ok),
        }
    }

    async fn accept(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        let waiters = self.state().waiters.accept(dir);
        waiters.wait_until(|| self.try_accept(dir)).await
    }

    fn try_accept(&self, dir: Dir) -> Option<Result<StreamId, ConnectionError>> {
        let state = self.state();
        // Also what came before the connection was lost.
        let accepted = state.proto.borrow_mut().streams().accept(dir);
        match accepted {
            Some(id) => {
                // The peer may open another one in its place.
                state.schedule();
                Some(Ok(id))
            }
            None => state.check().err().map(Err),
        }
    }

    /// As [`open_uni`](Self::open_uni), in one poll. The last waker of each task is woken.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        let waiters = self.state().waiters.open(Dir::Uni);
        let id = ready!(waiters.poll_until(cx, || self.try_open(Dir::Uni)))?;
        Poll::Ready(Ok(SendStream::new(Rc::clone(&self.0), id)))
    }

    /// As [`open_bi`](Self::open_bi), in one poll.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn poll_open_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let waiters = self.state().waiters.open(Dir::Bi);
        let id = ready!(waiters.poll_until(cx, || self.try_open(Dir::Bi)))?;
        Poll::Ready(Ok(self.both(id)))
    }

    /// As [`accept_uni`](Self::accept_uni), in one poll.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn poll_accept_uni(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionError>> {
        let waiters = self.state().waiters.accept(Dir::Uni);
        let id = ready!(waiters.poll_until(cx, || self.try_accept(Dir::Uni)))?;
        Poll::Ready(Ok(RecvStream::new(Rc::clone(&self.0), id)))
    }

    /// As [`accept_bi`](Self::accept_bi), in one poll.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        let waiters = self.state().waiters.accept(Dir::Bi);
        let id = ready!(waiters.poll_until(cx, || self.try_accept(Dir::Bi)))?;
        Poll::Ready(Ok(self.both(id)))
    }

    /// As [`SendStream::stopped`], of any stream of this connection that this side writes, by its number.
    ///
    /// # Panics
    ///
    /// Panics if this side does not write streams of this number.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub fn stopped(
        &self,
        stream: StreamId,
    ) -> impl Future<Output = Result<Option<VarInt>, ConnectionError>> + 'static {
        stopped(Rc::clone(self.state()), stream)
    }

    /// Sends a datagram, which may be lost, and come later than others. If too many wait to be
    /// sent, the oldest of them is dropped for it.
    ///
    /// # Errors
    ///
    /// The peer or this side takes none, it is too long, or the connection is lost.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        // What the caller's bytes are made of is the caller's code, which is not to run while the
        // connection is borrowed.
        match self.try_send_datagram(Bytes::copy_from_slice(&data), true) {
            Some(result) => result,
            None => unreachable!("it drops older ones rather than wait"),
        }
    }

    /// Sends a datagram once there is space for it among those that wait to be sent.
    ///
    /// # Errors
    ///
    /// As [`send_datagram`](Self::send_datagram).
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has sent nothing.
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let copy = Bytes::copy_from_slice(&data);
        let space = &self.state().waiters.datagram_space;
        space
            .wait_until(|| self.try_send_datagram(copy.clone(), false))
            .await
    }

    /// `None` if there is no space, and `drops_older` is false.
    fn try_send_datagram(
        &self,
        data: Bytes,
        drops_older: bool,
    ) -> Option<Result<(), SendDatagramError>> {
        use quinn_proto::SendDatagramError::{Blocked, Disabled, TooLarge, UnsupportedByPeer};
        let state = self.state();
        if let Err(error) = state.check() {
            return Some(Err(error.into()));
        }
        let sent = state.proto.borrow_mut().datagrams().send(data, drops_older);
        match sent {
            Ok(()) => {
                state.schedule();
                Some(Ok(()))
            }
            Err(Blocked(_)) => None,
            Err(UnsupportedByPeer) => Some(Err(SendDatagramError::UnsupportedByPeer)),
            Err(Disabled) => Some(Err(SendDatagramError::Disabled)),
            Err(TooLarge) => Some(Err(SendDatagramError::TooLarge)),
        }
    }

    /// Waits for a datagram of the peer.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. Any number of tasks may wait.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        let state = self.state();
        let read = || {
            let received = state.proto.borrow_mut().datagrams().recv();
            match received {
                Some(datagram) => Some(Ok(datagram)),
                None => state.check().err().map(Err),
            }
        };
        state.waiters.datagram.wait_until(read).await
    }

    /// The longest datagram that can be sent now, in bytes; it changes with the path. `None` if the
    /// peer or this side takes none.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.state().proto.borrow_mut().datagrams().max_size()
    }

    /// How many bytes of datagrams can be sent before the oldest are dropped.
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.state()
            .proto
            .borrow_mut()
            .datagrams()
            .send_buffer_space()
    }

    /// Closes it at once, with this code and reason for the peer. All that waits for it fails with
    /// [`ConnectionError::LocallyClosed`]; what was written and not received is lost.
    ///
    /// The reason is cut to what fits into a packet. See
    /// [`Endpoint::close`](crate::Endpoint::close) on how the peer is told for certain.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        self.state().close(code, Bytes::copy_from_slice(reason));
    }

    /// Waits until the connection is lost, for whatever reason.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. Any number of tasks may wait.
    pub async fn closed(&self) -> ConnectionError {
        let state = self.state();
        state.waiters.closed.wait_until(|| state.error()).await
    }

    /// Why the connection was lost, if it was.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.state().error()
    }

    /// The address of the peer, which changes when it migrates.
    pub fn remote_address(&self) -> SocketAddr {
        self.state().proto.borrow().remote_address()
    }

    /// The address of this side that the peer sends to, if known.
    pub fn local_ip(&self) -> Option<IpAddr> {
        self.state().proto.borrow().local_ip()
    }

    /// The estimate of the time to the peer and back.
    pub fn rtt(&self) -> Duration {
        self.state().proto.borrow().rtt()
    }

    /// The shortest time to the peer and back that was measured.
    pub fn min_rtt(&self) -> Duration {
        self.state().proto.borrow().min_rtt()
    }

    /// A copy of the congestion controller as it is now.
    pub fn congestion_state(&self) -> Box<dyn Controller> {
        self.state().proto.borrow().congestion_state().clone_box()
    }

    /// Changes to new keys now, and not after as many packets as the cipher allows for. For tests.
    pub fn force_key_update(&self) {
        self.state().proto.borrow_mut().force_key_update();
        self.state().schedule();
    }

    /// Sets how much of what was written the connection keeps until the peer has it, in bytes.
    pub fn set_send_window(&self, bytes: u64) {
        self.state().proto.borrow_mut().set_send_window(bytes);
        self.state().schedule();
    }

    /// Sets how much the peer may send, over all streams, before it is read, in bytes.
    pub fn set_receive_window(&self, bytes: VarInt) {
        self.state().proto.borrow_mut().set_receive_window(bytes);
        self.state().schedule();
    }

    /// Counters, and the state of the path.
    pub fn stats(&self) -> ConnectionStats {
        self.state().proto.borrow().stats()
    }

    /// What was agreed upon in the handshake: a
    /// [`crypto::HandshakeData`](crate::crypto::HandshakeData) for the configurations of this crate.
    pub fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.state()
            .proto
            .borrow()
            .crypto_session()
            .handshake_data()
    }

    /// Who the peer has proven to be: a `Vec<CertificateDer<'static>>` of rustls for the
    /// configurations of this crate.
    pub fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.state().proto.borrow().crypto_session().peer_identity()
    }

    /// Fills `output` with a secret that both peers derive from their session (RFC 5705).
    ///
    /// # Errors
    ///
    /// `output` is too long.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), quinn_proto::crypto::ExportKeyingMaterialError> {
        let proto = self.state().proto.borrow();
        proto
            .crypto_session()
            .export_keying_material(output, label, context)
    }

    /// Sets how many streams that this side reads the peer may have open at a time.
    pub fn set_max_concurrent_uni_streams(&self, count: VarInt) {
        self.set_max_concurrent_streams(Dir::Uni, count);
    }

    /// Sets how many streams in both directions the peer may have open at a time.
    pub fn set_max_concurrent_bi_streams(&self, count: VarInt) {
        self.set_max_concurrent_streams(Dir::Bi, count);
    }

    fn set_max_concurrent_streams(&self, dir: Dir, count: VarInt) {
        self.state()
            .proto
            .borrow_mut()
            .set_max_concurrent_streams(dir, count);
        self.state().schedule();
    }

    /// Equal for clones of one connection, and for none else while one of them lives.
    pub fn stable_id(&self) -> usize {
        Rc::as_ptr(&self.0).addr()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote_address", &self.remote_address())
            .field("close_reason", &self.close_reason())
            .finish_non_exhaustive()
    }
}
