//! How the sockets of shards are made.

use super::kept::Kept;
use super::membership::Group;
use super::{Common, Shard, Shards, Steering};
use crate::crypto::ResetKey;
use socket2::{Domain, Protocol, SockAddr, Type};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// How [`Shards`] are made.
///
/// # Examples
///
/// A program takes over from another one of the same user, which is told to end. Both have the same
/// key of resets, and a client of either gets on.
///
/// ```no_run
/// use glommio_quic::ShardOptions;
/// use glommio_quic::crypto::ResetKey;
///
/// # fn main() -> std::io::Result<()> {
/// # let secret = [7; 32];
/// let shards = ShardOptions::new()
///     .reset_key(ResetKey::new(&secret))
///     .share_address(true)
///     .first_number(4) // the other program has 0 to 3, and so has the next one
///     .bind(([0, 0, 0, 0], 4433).into(), 4)?;
/// # drop(shards);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ShardOptions {
    best: Steering,
    reset_key: Option<ResetKey>,
    first_number: usize,
    shares_address: bool,
}

impl Default for ShardOptions {
    fn default() -> Self {
        ShardOptions::new()
    }
}

impl ShardOptions {
    /// The defaults.
    pub fn new() -> ShardOptions {
        ShardOptions {
            best: Steering::Kernel,
            reset_key: None,
            first_number: 0,
            shares_address: false,
        }
    }

    /// The best steering that is wanted. Default [`Steering::Kernel`], if the kernel takes the program.
    #[must_use]
    pub fn steering(mut self, best: Steering) -> ShardOptions {
        self.best = best;
        self
    }

    /// The key of stateless resets. Default: a new one. With that of an earlier run, and the same
    /// numbers, clients of that run hear at once that their connections are lost.
    #[must_use]
    pub fn reset_key(mut self, key: ResetKey) -> ShardOptions {
        self.reset_key = Some(key);
        self
    }

    /// The number of the first shard. Default 0. Programs that [share](Self::share_address) an address
    /// need different ones.
    #[must_use]
    pub fn first_number(mut self, number: usize) -> ShardOptions {
        self.first_number = number;
        self
    }

    /// Whether another process of the same user may have shards at the address, as many, and the next
    /// one may come when that has ended. Default false. Their numbers are to begin at different
    /// multiples of their count: with four each at 0 and at 4 in turn.
    ///
    /// While both are there, the kernel steers each packet to the process that has its connection, and
    /// new clients to the one that has come last. The sockets of a process stay open until the
    /// last of its shards and [`Shards`] is gone: what is for a shard that has ended is lost
    /// until it is taken again.
    #[must_use]
    pub fn share_address(mut self, shares: bool) -> ShardOptions {
        self.shares_address = shares;
        self
    }

    /// Binds the sockets of `count` shards to `addr`; port 0 stands for a free one.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` for no shard, or numbers that are not below [`Shard::MAX`]. `AddrInUse`
    /// if there are sockets at the address, unless it is [shared](Self::share_address), and all of
    /// them are shards of the same user. What else `bind(2)` gives; or that the system has no random
    /// bytes.
    pub fn bind(self, addr: SocketAddr, count: usize) -> io::Result<Shards> {
        let end = self.first_number.saturating_add(count);
        if count == 0 || end > Shard::MAX {
            let first = self.first_number;
            let text = format!("{count} shards from number {first} on: one or more, below 256");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let reset_key = match self.reset_key {
            Some(key) => key,
            None => ResetKey::random().map_err(io::Error::other)?,
        };
        let (mut kept, mut addr, mut is_behind) = (None, addr, false);
        if self.shares_address {
            match bind(addr, false).and_then(|socket| socket.local_addr()) {
                Ok(free) => addr = free,
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => is_behind = true,
                Err(error) => return Err(error),
            }
            kept = Some(Arc::new(Kept::new(addr, count, |addr| bind(addr, true))?));
        }
        let mut common = Common {
            group: Arc::new(Group::new(self.first_number, count, is_behind)),
            addr,
            steering: self.best,
            kept,
            reset_key: Arc::new(reset_key),
        };
        let mut untaken = Vec::with_capacity(count);
        for index in 0..count {
            let shard = make(&common, index > 0)?;
            common.addr = shard.socket.local_addr()?;
            untaken.push(shard);
        }
        common.steering = common.steered(&untaken[0].socket, count);
        for shard in &mut untaken {
            shard.common.steering = common.steering;
            shard.common.addr = common.addr;
        }
        // The last is taken first.
        untaken.reverse();
        let untaken = Arc::new(Mutex::new(untaken));
        Ok(Shards { common, untaken })
    }
}

impl Common {
    /// What the kernel makes of the wanted steering.
    fn steered(&self, socket: &UdpSocket, count: usize) -> Steering {
        // A single socket needs none, and the kernel takes no program for it.
        let is_alone = count == 1 && self.kept.is_none();
        let steer = || match &self.kept {
            Some(kept) => self.group.steer_kept(kept),
            None => self.group.steer(socket),
        };
        match self.steering {
            Steering::Kernel if steer().is_ok() || is_alone => Steering::Kernel,
            Steering::Kernel | Steering::PassingOn => Steering::PassingOn,
        }
    }
}

/// A shard in place of one that has ended.
pub(super) fn make_again(common: &Common) -> io::Result<Shard> {
    let mut shard = make(common, true)?;
    if common.kept.is_none() {
        shard.common.steering = common.steered(&shard.socket, common.group.count());
    }
    Ok(shard)
}

fn make(common: &Common, is_with_others: bool) -> io::Result<Shard> {
    let common = common.clone();
    let (place, mut membership) = common.group.join().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::ResourceBusy,
            "all shards of the address are taken",
        )
    })?;
    let bind = || bind(common.addr, is_with_others);
    let socket = match &common.kept {
        Some(kept) => {
            if common.steering == Steering::Kernel {
                membership.kept = Arc::downgrade(kept);
            }
            kept.socket(place)?
        }
        None => common.group.bind(membership.number, bind)?,
    };
    Ok(Shard {
        socket,
        membership,
        common,
    })
}

/// A socket at `addr`, where there are others if `is_with_others`, and further ones may come.
fn bind(addr: SocketAddr, is_with_others: bool) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    // With the option, the kernel may choose a port that another socket with it has, and one at an
    // address that others use would share their packets.
    socket.set_reuse_port(is_with_others && addr.port() != 0)?;
    socket.bind(&SockAddr::from(addr))?;
    socket.set_reuse_port(true)?;
    Ok(socket.into())
}
