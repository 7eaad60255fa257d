//! The node whose code runs, as calls that name no descriptor see it.

use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{io, vec};

use super::current::current;
use super::ids::NodeId;
use super::world::World;
use simulated_kernel::disk::{Disk, Result};

/// A node of the simulation on this thread.
pub(crate) struct SimulatedNode {
    world: Rc<World>,
    id: NodeId,
}

/// The node whose code runs, if that is one of a simulation.
pub(crate) fn node() -> Option<SimulatedNode> {
    let world = current()?;
    let id = world.here()?;
    Some(SimulatedNode { world, id })
}

impl SimulatedNode {
    /// See [`World::may_open`].
    pub(crate) fn may_open(&self) -> io::Result<()> {
        self.world.may_open(self.id)
    }

    /// See [`World::next_executor_id`].
    pub(crate) fn next_executor_id(&self) -> Option<usize> {
        Some(self.world.next_executor_id(self.id))
    }

    pub(crate) fn open(&self, path: &OsStr, flags: i32) -> io::Result<OwnedFd> {
        let file = self.with(|disk| disk.open(None, path.as_bytes(), flags, 0))?;
        (self.world).open_descriptor(self.id, file, path.as_bytes())
    }

    pub(crate) fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        let read = self.with(|disk| disk.read_link(None, path.as_os_str().as_bytes()))?;
        Ok(OsString::from_vec(read).into())
    }

    pub(crate) fn is_link(&self, path: &Path) -> io::Result<bool> {
        let stat = self.with(|disk| disk.stat_at(None, path.as_os_str().as_bytes(), false))?;
        Ok(stat.mode & libc::S_IFMT == libc::S_IFLNK)
    }

    pub(crate) fn set_permissions(&self, path: &Path, permissions: Permissions) -> io::Result<()> {
        let mode = permissions.mode();
        self.with(|disk| disk.set_mode_at(None, path.as_os_str().as_bytes(), mode))
    }

    /// The address of a host; with its port if none is given.
    pub(crate) fn look_up(
        &self,
        host: &str,
        port: Option<u16>,
    ) -> io::Result<vec::IntoIter<SocketAddr>> {
        let (host, port) = match port {
            Some(port) => (host, port),
            None => (host.rsplit_once(':'))
                .and_then(|(host, port)| Some((host, port.parse().ok()?)))
                .ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidInput, "invalid socket address")
                })?,
        };
        let found = (self.world).with_network(|network| network.resolve(self.id, host));
        let address = found.ok_or_else(|| {
            io::Error::other(format!("there is no node {host:?} in the simulation"))
        })?;
        Ok(vec![SocketAddr::new(address, port)].into_iter())
    }

    /// Calls `call` with the disk.
    fn with<T>(&self, call: impl FnOnce(&mut Disk) -> Result<T>) -> io::Result<T> {
        let called = self.world.with_disk(self.id, call);
        called.map_err(io::Error::from_raw_os_error)
    }
}
