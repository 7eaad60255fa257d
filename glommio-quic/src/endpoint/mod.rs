//! Endpoints: a socket, and the connections over it.

mod driver;
mod incoming;
mod limits;
mod shared;
mod ticks;

pub use incoming::{Incoming, RetryError};
pub(crate) use limits::Client;
pub use limits::Limits;
pub(crate) use shared::Shared;

use crate::connection::Connecting;
use crate::shards::{Membership, Placed, Shard};
use crate::socket::Socket;
use crate::{ClientConfig, ConnectError, EndpointConfig, ServerConfig, VarInt, crypto};
use driver::{Receivers, drive};
use glommio::net::UdpSocket;
use glommio::spawn_local;
use glommio::time::now;
use std::cell::RefCell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// One UDP socket, and any number of connections over it, of clients and to servers.
///
/// Clones are the same endpoint. It belongs to the executor that it was made in, in whose current
/// task queue its tasks run: what it sends and receives is charged to that.
///
/// When the last clone is dropped no more connections come in; those that there are go on. When the
/// executor ends they are lost, without a word to the peers: [close](Self::close) the endpoint and
/// [wait](Self::wait_idle) before.
///
/// # Examples
///
/// See the [crate](crate).
pub struct Endpoint {
    shared: Rc<Shared>,
    receivers: Rc<Receivers>,
    client: RefCell<Option<ClientConfig>>,
}

impl Endpoint {
    /// An endpoint that can connect, and that is bound to `addr`; `0.0.0.0:0` or `[::]:0` for any
    /// free port.
    ///
    /// # Errors
    ///
    /// What `bind(2)` gives; or that the system has no random bytes.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn client(addr: SocketAddr) -> io::Result<Endpoint> {
        let config = crypto::endpoint_config().map_err(io::Error::other)?;
        Endpoint::new(config, None, bound(addr)?)
    }

    /// An endpoint that is connected to, and can connect, bound to `addr`.
    ///
    /// # Errors
    ///
    /// As [`client`](Self::client).
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Endpoint> {
        let endpoint = crypto::endpoint_config().map_err(io::Error::other)?;
        Endpoint::new(endpoint, Some(config), bound(addr)?)
    }

    /// An endpoint over a bound socket, of the standard library or of glommio; without `server` it refuses connections. In a
    /// simulation it has to be one of glommio.
    ///
    /// # Errors
    ///
    /// An option of the socket cannot be set.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn new(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: impl Into<UdpSocket>,
    ) -> io::Result<Endpoint> {
        let socket: UdpSocket = socket.into();
        Endpoint::start(config, server, socket.into(), None)
    }

    /// The endpoint of one shard of several that serve one address. To be made in the executor of
    /// that shard, each with a clone of the same configuration, so that each knows the tokens that
    /// the others have issued.
    ///
    /// # Errors
    ///
    /// An option of the socket cannot be set.
    ///
    /// # Panics
    ///
    /// Panics if no executor is running on this thread.
    pub fn shard(server: ServerConfig, shard: Shard) -> io::Result<Endpoint> {
        let config = shard.endpoint_config();
        Endpoint::shard_with(config, Some(server), shard)
    }

    /// As [`shard`](Self::shard), with the settings in `config`, except that the connection IDs and
    /// the key of stateless resets are those of the shard; without `server` it refuses connections.
    ///
    /// # Errors
    ///
    /// As [`shard`](Self::shard).
    ///
    /// # Panics
    ///
    /// As [`shard`](Self::shard).
    pub fn shard_with(
        mut config: EndpointConfig,
        server: Option<ServerConfig>,
        shard: Shard,
    ) -> io::Result<Endpoint> {
        shard.apply(&mut config);
        let (socket, membership) = shard.into_parts();
        Endpoint::start(
            config,
            server,
            socket.map(UdpSocket::from),
            Some(membership),
        )
    }

    fn start(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: Placed<UdpSocket>,
        shard: Option<Arc<Membership>>,
    ) -> io::Result<Endpoint> {
        let socket = Rc::new(Socket::new(socket)?);
        let shared = Shared::new(config, server, Rc::clone(&socket), shard.clone());
        let receivers = Rc::new(Receivers::default());
        receivers.start(&shared, socket);
        if let Some(shard) = shard {
            receivers.start_inbox(&shared, shard);
        }
        spawn_local(drive(Rc::clone(&shared), Rc::clone(&receivers))).detach();
        Ok(Endpoint {
            shared,
            receivers,
            client: RefCell::default(),
        })
    }

    /// What [`connect`](Self::connect) goes by, of this clone and those made of it later.
    pub fn set_default_client_config(&self, config: ClientConfig) {
        let replaced = self.client.borrow_mut().replace(config);
        drop(replaced);
    }

    /// Sets what new connections that come in go by. With `None` clients get no usable answer, and give
    /// up after their idle timeout: to turn them away at once, [`refuse`](crate::Incoming::refuse) them.
    pub fn set_server_config(&self, config: Option<ServerConfig>) {
        self.shared.proto().set_server_config(config.map(Arc::new));
    }

    /// Sets what clients may take, of all clones. It does not apply to what they have by now.
    pub fn set_limits(&self, limits: Limits) {
        self.shared.limits.set(limits);
        self.shared.incoming_waiters.wake_all();
    }

    /// Connects to a server, whose certificate is to name `server_name`.
    ///
    /// # Errors
    ///
    /// At once: the endpoint is closed, there is no configuration, the name or the address is none
    /// to connect to. Errors of the network and the server are results of the [`Connecting`].
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let config = self.client.borrow().clone();
        let config = config.ok_or(ConnectError::NoDefaultClientConfig)?;
        self.connect_with(config, addr, server_name)
    }

    /// As [`connect`](Self::connect), with this configuration.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_with(
        &self,
        config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        let socket = self.shared.socket().filter(|_| !self.shared.is_closed());
        let addr = socket
            .ok_or(ConnectError::EndpointStopping)?
            .reachable(addr)?;
        let connected = self
            .shared
            .proto()
            .connect(now(), config, addr, server_name);
        let (handle, proto) = connected?;
        Ok(Connecting::new(self.shared.insert(handle, proto, None)))
    }

    /// Waits for the next client that wants to connect. `None` when the endpoint is closed.
    ///
    /// Other tasks run first if they are to: to accept or to turn away a client takes longer than
    /// most operations.
    ///
    /// How many wait is limited by [`ServerConfig::max_incoming`]. Further ones are ignored; they
    /// ask again. [`Limits`] may keep those that wait from being accepted.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped. Any number of tasks may wait.
    pub async fn accept(&self) -> Option<Incoming> {
        let shared = &self.shared;
        let next = || match shared.next_incoming() {
            Some(next) => Some(Some(next)),
            None => shared.is_closed().then_some(None),
        };
        loop {
            glommio::yield_if_needed().await;
            if let Ok(proto) = shared.incoming_waiters.wait_until(next).await? {
                return Some(Incoming::new(Rc::clone(shared), proto));
            }
        }
    }

    /// Closes all connections, with this code and reason for the peers, and takes no more.
    ///
    /// The peers are told by one packet each, and once more if they still send. To have them told
    /// before the executor ends, await [`wait_idle`](Self::wait_idle) after it.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        self.shared.close(code, reason);
    }

    /// Waits until there is no connection, not even one that was closed and whose peer may not know
    /// it yet: three probe timeouts after it was closed. Nor one that is to be refused as the endpoint
    /// is closed.
    ///
    /// It does not close any.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped.
    pub async fn wait_idle(&self) {
        let is_idle = || self.shared.is_idle().then_some(());
        self.shared.idle_waiters.wait_until(is_idle).await;
    }

    /// Goes on with another socket, as when the machine has moved to another network: connections
    /// of clients migrate to it. Packets that arrive at the old one are lost.
    ///
    /// A connection must not migrate before its handshake is confirmed (RFC 9000, section 9), and may
    /// be lost if it does.
    ///
    /// # Errors
    ///
    /// An option of the socket cannot be set; the endpoint keeps its socket. Kind `NotConnected` if
    /// the executor of the endpoint has ended.
    pub fn rebind(&self, socket: impl Into<UdpSocket>) -> io::Result<()> {
        self.shared.socket().ok_or_else(ended)?;
        let socket: UdpSocket = socket.into();
        let socket = Rc::new(Socket::new(socket.into())?);
        self.shared.rebind(Rc::clone(&socket));
        self.receivers.start(&self.shared, socket);
        Ok(())
    }

    /// The address of the socket.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` gives. Kind `NotConnected` if the executor of the endpoint has ended,
    /// and its port is free again.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.shared.socket().ok_or_else(ended)?.local_addr()
    }

    /// Counters of this endpoint.
    pub fn stats(&self) -> EndpointStats {
        self.shared.stats.get()
    }

    /// How many connections there are, those included that are in their handshake, or closed and
    /// not forgotten yet.
    pub fn open_connections(&self) -> usize {
        self.shared.open_connections()
    }
}

fn bound(addr: SocketAddr) -> io::Result<UdpSocket> {
    match glommio::__is_simulated() {
        true => Ok(UdpSocket::bind(addr)?),
        // No other socket may share the address.
        false => Ok(std::net::UdpSocket::bind(addr)?.into()),
    }
}

fn ended() -> io::Error {
    let text = "the executor of the endpoint has ended";
    io::Error::new(io::ErrorKind::NotConnected, text)
}

/// Counters of an [`Endpoint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that the socket has received.
    pub received: u64,
    /// Those of them that were passed on to another shard.
    pub passed_on: u64,
    /// Those that were for another shard, and that it had no space for, or was gone.
    pub not_passed_on: u64,
    /// Datagrams that other shards have passed on to this one.
    pub taken_over: u64,
    /// Retries, refusals, resets and lists of versions that the send queue of the socket had no
    /// space for.
    pub answers_dropped: u64,
    /// Datagrams and trains of them that could not be sent, for another reason than that.
    pub sends_failed: u64,
    /// First packets of clients that nothing was made of: too many wait to be accepted
    /// ([`ServerConfig::max_incoming`]), or they are not what they should be.
    pub initials_ignored: u64,
    /// Clients that were accepted.
    pub accepted: u64,
    /// Clients that were refused, by the program or because of [`Limits`].
    pub refused: u64,
    /// Clients that were asked to prove their address.
    pub retried: u64,
    /// Clients that were [ignored](Incoming::ignore).
    pub ignored: u64,
    /// Handshakes that took longer than [`Limits::handshake_timeout`].
    pub handshakes_timed_out: u64,
}

impl Clone for Endpoint {
    fn clone(&self) -> Endpoint {
        self.shared.handles.set(self.shared.handles.get() + 1);
        Endpoint {
            shared: Rc::clone(&self.shared),
            receivers: Rc::clone(&self.receivers),
            client: self.client.clone(),
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let handles = self.shared.handles.get() - 1;
        self.shared.handles.set(handles);
        if handles == 0 {
            self.shared.wake_driver();
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_addr", &self.local_addr().ok())
            .field("open_connections", &self.open_connections())
            .finish_non_exhaustive()
    }
}
