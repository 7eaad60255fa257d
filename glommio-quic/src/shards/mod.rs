//! One endpoint per shard, all of them at one address.
//!
//! ```text
//!   short header   0.......  │ shard │ 7 random bytes │ ...
//!   long header    1.......  │ version (4) │ length │ shard │ 7 random bytes │ ...
//! ```
//!
//! The connection IDs that a shard issues begin with its number. A program in the kernel
//! (`program.rs`) hands each packet that carries one to the socket of that shard, from wherever the
//! peer may send by now. The first packets of a client carry an ID of its own choice. If that looks
//! like one of a shard, they go to that shard, and else the kernel shares them out by addresses,
//! which do not change before the handshake is over (RFC 9000, section 9).
//!
//! Where the kernel does not take the program, and when the socket of a shard is closed, packets
//! come to other shards. Those pass them on, by a bounded queue per shard: what does not fit is as
//! lost as by the network. What is for a shard that is gone they answer as an endpoint answers after
//! a restart: the client hears that its connection is lost.

mod ids;
mod kept;
mod membership;
mod options;
mod order;
mod program;

pub(crate) use membership::{Membership, Passed};
pub use options::ShardOptions;
pub(crate) use order::Placed;

use crate::EndpointConfig;
use crate::crypto::ResetKey;
use ids::ShardIds;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The shards of one address, for executors to take one each; clones are the same.
///
/// When the endpoint of a shard is gone, as its executor has ended, its shard can be taken again:
/// with [`ShardExitPolicy::Restart`](glommio::ShardExitPolicy::Restart) a shard that has died serves again. Its
/// connections are lost, and the peers hear that from the shards that live, or from the new one.
///
/// # Examples
///
/// ```no_run
/// use glommio::{LocalExecutorPoolBuilder, PoolPlacement, ShardExitPolicy};
/// use glommio_quic::{Endpoint, ServerConfig, ShardOptions};
///
/// # fn serve(config: ServerConfig) -> Result<(), Box<dyn std::error::Error>> {
/// let shards = ShardOptions::new().bind("0.0.0.0:4433".parse()?, 4)?;
/// let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(4))
///     .on_shard_end(ShardExitPolicy::Restart { per_minute: 10 });
/// pool.try_on_all_shards(async move || {
///     let endpoint = Endpoint::shard(config.clone(), shards.take()?)?;
///     while let Some(incoming) = endpoint.accept().await {
///         // ...
/// #       drop(incoming);
///     }
///     Ok::<_, std::io::Error>(())
/// })?.join_all();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Shards {
    common: Common,
    untaken: Arc<Mutex<Vec<Shard>>>,
}

/// What the shards of a group have in common.
#[derive(Clone)]
struct Common {
    group: Arc<membership::Group>,
    addr: SocketAddr,
    steering: Steering,
    /// Of a process that shares the address.
    kept: Option<Arc<kept::Kept>>,
    reset_key: Arc<ResetKey>,
}

/// The socket of one of several shards, for [`Endpoint::shard`](crate::Endpoint::shard) in its
/// executor.
pub struct Shard {
    // It is closed before the shard leaves.
    socket: Placed<UdpSocket>,
    membership: Membership,
    common: Common,
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

impl Shards {
    /// A shard that none has taken, or whose endpoint is gone.
    ///
    /// # Errors
    ///
    /// Kind `ResourceBusy` if all are taken. What `bind(2)` gives for one that is taken again.
    pub fn take(&self) -> io::Result<Shard> {
        let mut untaken = self.untaken();
        match untaken.pop() {
            Some(shard) => Ok(shard),
            None => options::make_again(&self.common),
        }
    }

    /// The address of all of them.
    pub fn local_addr(&self) -> SocketAddr {
        self.common.addr
    }

    fn untaken(&self) -> std::sync::MutexGuard<'_, Vec<Shard>> {
        // The last is taken first.
        self.untaken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    /// How many shards there may be: the number is a byte of connection IDs.
    pub const MAX: usize = 256;

    /// Sockets of `count` shards at `addr`, steered by the kernel if it takes the program; no
    /// privileges are needed. [`ShardOptions`] has more to choose, and makes shards that can be
    /// taken again.
    ///
    /// # Errors
    ///
    /// As [`ShardOptions::bind`].
    pub fn bind(addr: SocketAddr, count: usize) -> io::Result<Vec<Shard>> {
        Shard::bind_with(addr, count, Steering::Kernel)
    }

    /// As [`bind`](Self::bind), with the best steering that is wanted.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_with(addr: SocketAddr, count: usize, best: Steering) -> io::Result<Vec<Shard>> {
        let shards = ShardOptions::new().steering(best).bind(addr, count)?;
        let mut all = std::mem::take(&mut *shards.untaken());
        all.reverse();
        Ok(all)
    }

    /// From 0, or [`first_number`](ShardOptions::first_number).
    pub fn number(&self) -> usize {
        self.membership.number.into()
    }

    /// How its packets come to it.
    pub fn steering(&self) -> Steering {
        self.common.steering
    }

    /// The address of all shards.
    ///
    /// # Errors
    ///
    /// What `getsockname(2)` gives.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The defaults for an endpoint of a shard, which [`apply`](Self::apply) completes.
    pub(crate) fn endpoint_config(&self) -> EndpointConfig {
        let mut config = EndpointConfig::new(Arc::clone(&self.common.reset_key) as _);
        // Those that live answer for all connections of one that is gone. A reset is shorter than
        // what it answers.
        config.min_reset_interval(Duration::from_millis(1));
        config
    }

    /// Sets what is to be the same for all shards, or to tell them apart.
    pub(crate) fn apply(&self, config: &mut EndpointConfig) {
        let (number, group) = (self.membership.number, Arc::clone(&self.common.group));
        config.reset_key(Arc::clone(&self.common.reset_key) as _);
        config.cid_generator(move || {
            let group = Arc::clone(&group);
            Box::new(ShardIds { number, group })
        });
    }

    pub(crate) fn into_parts(self) -> (Placed<UdpSocket>, Arc<Membership>) {
        (self.socket, Arc::new(self.membership))
    }
}

/// To set options of its socket, such as the size of the receive buffer.
impl AsFd for Shard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for Shards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shards")
            .field("local_addr", &self.common.addr)
            .field("steering", &self.common.steering)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("number", &self.number())
            .field("steering", &self.steering())
            .finish_non_exhaustive()
    }
}
