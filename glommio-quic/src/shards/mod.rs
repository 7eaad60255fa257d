//! One endpoint per shard, all of them at one address.
//!
//! ```text
//!   short header   0.......  │ shard │ 7 random bytes │ ...
//!   long header    1.TT....  │ version (4) │ length │ shard │ 7 random bytes │ ...
//! ```
//!
//! The connection IDs that a shard issues begin with its number. A program in the kernel
//! (`program.rs`) hands each packet that carries one to the socket of that shard, from wherever the
//! client may send by now. The first packets of a client carry a number of its own choice; the
//! kernel shares them out by addresses, which do not change before the handshake is over
//! (RFC 9000, section 9).
//!
//! Where the kernel does not take the program, and when the socket of a shard is closed, packets
//! come to other shards. Those pass them on, by a bounded queue per shard: what does not fit is as
//! lost as by the network.

mod membership;
mod program;

pub(crate) use membership::{Membership, Passed};

use crate::EndpointConfig;
use crate::crypto::ResetKey;
use membership::Group;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use socket2::{Domain, Protocol, SockAddr, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The socket of one of several shards, for [`Endpoint::shard`](crate::Endpoint::shard) in its
/// executor.
///
/// # Examples
///
/// ```no_run
/// use glommio::{LocalExecutorPoolBuilder, PoolPlacement};
/// use glommio_quic::{Endpoint, ServerConfig, Shard};
/// use std::sync::{Arc, Mutex};
///
/// # fn serve(config: ServerConfig) -> Result<(), Box<dyn std::error::Error>> {
/// let shards = Arc::new(Mutex::new(Shard::bind("0.0.0.0:4433".parse()?, 4)?));
/// let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(4));
/// pool.on_all_shards(async move || {
///     let shard = shards.lock().expect("no panic").pop().expect("one for each");
///     let endpoint = Endpoint::shard(config.clone(), shard)?;
///     while let Some(incoming) = endpoint.accept().await {
///         // ...
/// #       drop(incoming);
///     }
///     Ok::<_, std::io::Error>(())
/// })?.join_all();
/// # Ok(())
/// # }
/// ```
pub struct Shard {
    socket: UdpSocket,
    number: u8,
    steering: Steering,
    group: Arc<Group>,
    reset_key: Arc<ResetKey>,
}

/// How packets come to the shard that has their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Steering {
    /// The kernel looks at their connection ID.
    Kernel,
    /// The shard that receives them passes them on.
    PassingOn,
}

impl Shard {
    /// How many shards there may be: the number is a byte of connection IDs.
    pub const MAX: usize = 256;

    /// Sockets of `count` shards at `addr`, steered by the kernel if it takes the program; no
    /// privileges are needed.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` for no shard, or more than [`MAX`](Self::MAX). What `bind(2)` gives; or
    /// that the system has no random bytes.
    pub fn bind(addr: SocketAddr, count: usize) -> io::Result<Vec<Shard>> {
        Shard::bind_with(addr, count, Steering::Kernel)
    }

    /// As [`bind`](Self::bind), with the best steering that is wanted.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_with(addr: SocketAddr, count: usize, best: Steering) -> io::Result<Vec<Shard>> {
        if count == 0 || count > Shard::MAX {
            let text = format!("{count} shards of an endpoint; 1 to {} can be", Shard::MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let reset_key = Arc::new(ResetKey::random().map_err(io::Error::other)?);
        let group = Arc::new(Group::new(count));

        // The kernel numbers them in this order.
        let mut sockets = vec![bind(addr)?];
        let addr = sockets[0].local_addr()?;
        for _ in 1..count {
            sockets.push(bind(addr)?);
        }
        let steering = match best {
            // A single socket needs none, and the kernel takes none for it if it has chosen the port.
            Steering::Kernel if program::attach(&sockets[0]).is_ok() || count == 1 => {
                Steering::Kernel
            }
            Steering::Kernel | Steering::PassingOn => Steering::PassingOn,
        };
        let shards = sockets
            .into_iter()
            .zip(0..=u8::MAX)
            .map(|(socket, number)| Shard {
                socket,
                number,
                steering,
                group: Arc::clone(&group),
                reset_key: Arc::clone(&reset_key),
            });
        Ok(shards.collect())
    }

    /// From 0.
    pub fn number(&self) -> usize {
        self.number.into()
    }

    /// How its packets come to it.
    pub fn steering(&self) -> Steering {
        self.steering
    }

    /// The address of all shards.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` gives.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(crate) fn endpoint_config(&self) -> EndpointConfig {
        let mut config = EndpointConfig::new(Arc::clone(&self.reset_key) as _);
        let number = self.number;
        config.cid_generator(move || Box::new(ShardIds { number }));
        config
    }

    pub(crate) fn into_parts(self) -> (UdpSocket, Arc<Membership>) {
        let membership = Membership::new(self.group, self.number);
        (self.socket, Arc::new(membership))
    }
}

/// To set options of its socket, such as the size of the receive buffer.
impl AsFd for Shard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("number", &self.number)
            .field("steering", &self.steering)
            .finish_non_exhaustive()
    }
}

fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    // With the option, the kernel may choose a port that another socket with it has.
    let chooses_port = addr.port() == 0;
    socket.set_reuse_port(!chooses_port)?;
    socket.bind(&SockAddr::from(addr))?;
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}

/// Connection IDs that tell the shard, in the clear: who sees the packets of a connection before
/// and after a migration learns that both are for one shard of `count`.
struct ShardIds {
    number: u8,
}

const ID_LEN: usize = 8;

impl ConnectionIdGenerator for ShardIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_LEN];
        // It has given the keys of the endpoint before.
        graviola::random::fill(&mut id[1..]).expect("the system has random bytes");
        id[0] = self.number;
        ConnectionId::new(&id)
    }

    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        match cid.len() == ID_LEN && cid[0] == self.number {
            true => Ok(()),
            false => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        ID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
