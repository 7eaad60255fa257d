//! The files of Unix sockets. The network knows a socket by its file, whatever names that has by now, and by the path that
//! it was bound to, which is what its address tells.

#![forbid(unsafe_code)]

use super::ids::{NodeId, Result};
use super::world::World;
use simulated_kernel::network::{Address, SocketId, UnixName};

/// The name of a socket in the network.
fn name_of(ino: u64, path: &[u8]) -> Vec<u8> {
    [ino.to_string().as_bytes(), b"\0", path].concat()
}

/// The path of such a name.
pub(crate) fn path_of(name: &[u8]) -> &[u8] {
    let end = name.iter().position(|byte| *byte == 0);
    &name[end.map_or(0, |end| end + 1)..]
}

impl World {
    /// Binds a socket. One of Unix gets a file, if its address is a path.
    pub(crate) fn bind(&self, node: NodeId, socket: SocketId, to: &Address) -> Result<()> {
        let bind = |to: &Address| self.with_network(|network| network.bind(socket, to));
        let Some(path) = self.unix_path(socket, to) else {
            return bind(to);
        };
        let made = self.with_disk(node, |disk| disk.make_socket(None, path));
        let ino = made.map_err(|errno| match errno {
            libc::EEXIST => libc::EADDRINUSE,
            errno => errno,
        })?;
        let name = name_of(ino, path);
        bind(&Address::Unix(UnixName::Path(name.clone()))).inspect_err(|_| {
            let _ = self.with_disk(node, |disk| disk.unlink(None, path));
        })?;
        self.unix_files.borrow_mut().insert((node, ino), name);
        Ok(())
    }

    /// Connects a socket, or begins to.
    pub(crate) fn connect(&self, node: NodeId, socket: SocketId, to: &Address) -> Result<()> {
        let to = self.found(node, socket, to)?;
        self.with_network(|network| network.connect(socket, &to))
    }

    /// The address as the network knows it.
    pub(crate) fn found(
        &self,
        node: NodeId,
        socket: SocketId,
        address: &Address,
    ) -> Result<Address> {
        let Some(path) = self.unix_path(socket, address) else {
            return Ok(address.clone());
        };
        let file = self.with_disk(node, |disk| disk.stat_at(None, path, true))?;
        let files = self.unix_files.borrow();
        let name = files.get(&(node, file.ino)).ok_or(libc::ECONNREFUSED)?;
        Ok(Address::Unix(UnixName::Path(name.clone())))
    }

    /// The path of an address, if the socket is one that takes it.
    fn unix_path<'a>(&self, socket: SocketId, address: &'a Address) -> Option<&'a [u8]> {
        match address {
            Address::Unix(UnixName::Path(path)) if self.network().is_unix(socket) => {
                Some(path.as_slice())
            }
            _ => None,
        }
    }
}
