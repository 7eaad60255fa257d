//! Sockets are made, named, shut down and closed.

use std::net::{Shutdown, SocketAddr};

use super::address::{Address, NodeId, Result, SocketId, shown, unspecified};
use super::kind::{Kind, Protocol};
use super::socket::{Body, Options, Socket};
use super::state::Network;
use super::tcp::Connection;
use super::udp_socket::Udp;
use super::unix_socket::Unix;

impl Network {
    /// # Panics
    ///
    /// If there is no such node.
    pub fn socket(&mut self, node: NodeId, kind: Kind) -> SocketId {
        assert!(
            node.0 < self.nodes.len(),
            "{node:?} was not added to this network"
        );
        let options = Options::new(kind);
        let buffers = options.tcp_buffers();
        let body = match kind.protocol() {
            Protocol::Tcp => Body::Tcp(Box::new(Connection::new(buffers.0, buffers.1))),
            Protocol::Udp => Body::Udp(Udp::default()),
            Protocol::Unix => Body::Unix(Unix::default()),
        };
        self.insert(Socket::new(node, kind, body, options))
    }

    /// # Errors
    ///
    /// `EOPNOTSUPP` for sockets that are not of Unix.
    pub fn pair(&mut self, node: NodeId, kind: Kind) -> Result<(SocketId, SocketId)> {
        if kind.protocol() != Protocol::Unix {
            return Err(libc::EOPNOTSUPP);
        }
        let (one, other) = (self.socket(node, kind), self.socket(node, kind));
        self.unix_join(one, other);
        Ok((one, other))
    }

    /// # Errors
    ///
    /// `EINVAL` if it is bound already, `EADDRINUSE`, `EADDRNOTAVAIL` for an address of another
    /// node, `EAFNOSUPPORT`.
    pub fn bind(&mut self, id: SocketId, address: &Address) -> Result<()> {
        let socket = self.get(id)?;
        if socket.kind.protocol() == Protocol::Unix {
            return self.unix_bind(id, address);
        }
        let address = socket.kind.accepts(address)?;
        if !address.ip().is_unspecified() && !self.is_local(socket.node, address.ip()) {
            return Err(libc::EADDRNOTAVAIL);
        }
        let is_used = match &socket.body {
            Body::Tcp(connection) => !connection.is_fresh(),
            Body::Listener(_) => true,
            _ => false,
        };
        if is_used || socket.is_bound {
            return Err(libc::EINVAL);
        }
        self.bind_port(id, address)?;
        let socket = self.get_mut(id)?;
        socket.was_bound = true;
        socket.keeps_port = address.port() != 0;
        Ok(())
    }

    /// # Errors
    ///
    /// `ENOTCONN`, after which a socket of datagrams is shut down nevertheless.
    pub fn shutdown(&mut self, id: SocketId, how: Shutdown) -> Result<()> {
        let read = matches!(how, Shutdown::Read | Shutdown::Both);
        let write = matches!(how, Shutdown::Write | Shutdown::Both);
        let result = match &mut self.get_mut(id)?.body {
            Body::Tcp(_) => self.step(id, |connection, now, output| {
                connection.shutdown(read, write, now, output)
            })?,
            Body::Listener(_) => {
                if read {
                    self.stop_listening(id);
                }
                Ok(())
            }
            Body::Udp(udp) => {
                udp.read_shut |= read;
                udp.write_shut |= write;
                self.touch(id);
                self.get(id)?.peer.map(|_| ()).ok_or(libc::ENOTCONN)
            }
            Body::Unix(_) => {
                self.unix_shutdown(id, read, write);
                Ok(())
            }
        };
        self.deliver_local();
        result
    }

    /// Closes a socket. What a connection has not delivered yet is delivered in the background,
    /// unless data was left unread: then the peer gets a reset.
    pub fn close(&mut self, id: SocketId) -> Result<()> {
        let socket = self.get_mut(id)?;
        let resets = socket.options.resets_on_close;
        match socket.body {
            Body::Tcp(_) => {
                socket.is_closed = true;
                self.step(id, |connection, now, output| {
                    connection.close(resets, now, output)
                })?;
            }
            Body::Listener(_) => {
                self.stop_listening(id);
                self.remove(id);
            }
            Body::Udp(_) => {
                self.remove(id);
            }
            Body::Unix(_) => self.unix_end(id, false),
        }
        self.deliver_local();
        Ok(())
    }

    /// The listener ends: connections that wait are reset, and it is a fresh socket with the same
    /// port.
    fn stop_listening(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let (node, port) = (socket.node, socket.local.map_or(0, |local| local.port()));
        let Some(listener) = socket.listener().map(std::mem::take) else {
            return;
        };
        let buffers = socket.options.tcp_buffers();
        socket.body = Body::Tcp(Box::new(Connection::new(buffers.0, buffers.1)));
        let keeps_port = socket.keeps_port;
        self.ports.remove_listener(node, port, id);
        if !keeps_port {
            self.unbind(id);
        }
        for child in listener.starting {
            self.remove(child);
        }
        for child in listener.waiting {
            // A child is a connection.
            let _ = self.step(child, |connection, now, output| {
                connection.close(true, now, output)
            });
        }
        self.touch(id);
    }

    /// The address of the socket: `getsockname(2)`.
    pub fn local_addr(&self, id: SocketId) -> Result<Address> {
        let socket = self.get(id)?;
        if let Body::Unix(unix) = &socket.body {
            return Ok(Address::Unix(unix.name.clone()));
        }
        let is_v6 = socket.kind.is_v6();
        Ok(Address::Ip(match socket.local {
            // An unspecified address belongs to both families.
            Some(local) if local.ip().is_unspecified() => {
                SocketAddr::new(unspecified(is_v6), local.port())
            }
            Some(local) => shown(local, is_v6),
            None => SocketAddr::new(unspecified(is_v6), 0),
        }))
    }

    /// The address of its peer: `getpeername(2)`.
    ///
    /// # Errors
    ///
    /// `ENOTCONN`
    pub fn peer_addr(&self, id: SocketId) -> Result<Address> {
        let socket = self.get(id)?;
        let has_peer = match &socket.body {
            Body::Tcp(connection) => connection.has_peer(),
            Body::Udp(_) => true,
            Body::Listener(_) => false,
            Body::Unix(unix) => {
                return unix
                    .peer_name
                    .clone()
                    .map(Address::Unix)
                    .ok_or(libc::ENOTCONN);
            }
        };
        let peer = socket.peer.filter(|_| has_peer).ok_or(libc::ENOTCONN)?;
        Ok(Address::Ip(shown(peer, socket.kind.is_v6())))
    }
}
