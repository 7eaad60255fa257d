//! Scenarios on the kernel.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{MsgFlags, recv};
use socket2::{Domain, SockAddr, Socket, Type};

use super::super::super::{Address, Kind, Received, Result, UnixName};
use super::{Setting, Sockets};

#[derive(Default)]
pub(super) struct Kernel {
    sockets: Vec<(Option<Socket>, Kind)>,
}

fn errno(error: io::Error) -> i32 {
    error.raw_os_error().expect("an error of the system")
}

fn domain_and_type(kind: Kind) -> (Domain, Type) {
    match kind {
        Kind::TcpV4 => (Domain::IPV4, Type::STREAM),
        Kind::TcpV6 => (Domain::IPV6, Type::STREAM),
        Kind::UdpV4 => (Domain::IPV4, Type::DGRAM),
        Kind::UdpV6 => (Domain::IPV6, Type::DGRAM),
        Kind::UnixStream => (Domain::UNIX, Type::STREAM),
        Kind::UnixDatagram => (Domain::UNIX, Type::DGRAM),
    }
}

fn to_kernel(address: &Address) -> SockAddr {
    let path = match address {
        Address::Ip(address) => return (*address).into(),
        Address::Unix(UnixName::Unnamed) => Vec::new(),
        Address::Unix(UnixName::Path(path)) => path.clone(),
        Address::Unix(UnixName::Abstract(name)) => [&[0], name.as_slice()].concat(),
    };
    SockAddr::unix(std::ffi::OsStr::from_bytes(&path)).expect("a short name")
}

fn from_kernel(address: &SockAddr) -> Address {
    if let Some(address) = address.as_socket() {
        return Address::Ip(address);
    }
    if let Some(name) = address.as_abstract_namespace() {
        return Address::Unix(UnixName::Abstract(name.to_vec()));
    }
    let path = address
        .as_pathname()
        .map(|path| path.as_os_str().as_bytes().to_vec());
    Address::Unix(
        path.filter(|path| !path.is_empty())
            .map_or(UnixName::Unnamed, UnixName::Path),
    )
}

impl Kernel {
    fn get(&self, id: usize) -> &Socket {
        self.sockets[id].0.as_ref().expect("an open socket")
    }

    fn add(&mut self, socket: Socket, kind: Kind) -> usize {
        socket.set_nonblocking(true).expect("a mode");
        self.sockets.push((Some(socket), kind));
        self.sockets.len() - 1
    }
}

impl Sockets for Kernel {
    fn socket(&mut self, kind: Kind) -> usize {
        let (domain, r#type) = domain_and_type(kind);
        let socket = Socket::new(domain, r#type, None).expect("a socket");
        if matches!(kind, Kind::TcpV4 | Kind::TcpV6) {
            // Otherwise a segment may wait until the one before is confirmed, which takes its time.
            socket.set_tcp_nodelay(true).expect("an option");
        }
        self.add(socket, kind)
    }

    fn pair(&mut self, kind: Kind) -> (usize, usize) {
        let (domain, r#type) = domain_and_type(kind);
        let (one, other) = Socket::pair(domain, r#type, None).expect("a pair");
        (self.add(one, kind), self.add(other, kind))
    }

    fn bind(&mut self, id: usize, address: &Address) -> Result<()> {
        self.get(id).bind(&to_kernel(address)).map_err(errno)
    }

    fn listen(&mut self, id: usize, backlog: usize) -> Result<()> {
        self.get(id)
            .listen(i32::try_from(backlog).expect("a small backlog"))
            .map_err(errno)
    }

    fn connect(&mut self, id: usize, address: &Address) -> Result<()> {
        self.get(id).connect(&to_kernel(address)).map_err(errno)
    }

    fn accept(&mut self, id: usize) -> Result<(usize, Address)> {
        let (socket, address) = self.get(id).accept().map_err(errno)?;
        let kind = self.sockets[id].1;
        Ok((self.add(socket, kind), from_kernel(&address)))
    }

    fn send(&mut self, id: usize, bytes: &[u8], address: Option<&Address>) -> Result<usize> {
        let socket = self.get(id);
        match address {
            None => socket.send_with_flags(bytes, libc::MSG_NOSIGNAL),
            Some(address) => {
                socket.send_to_with_flags(bytes, &to_kernel(address), libc::MSG_NOSIGNAL)
            }
        }
        .map_err(errno)
    }

    fn receive(&mut self, id: usize, buffer: &mut [u8], peek: bool) -> Result<Received> {
        let kind = self.sockets[id].1;
        let is_stream = matches!(kind, Kind::TcpV4 | Kind::TcpV6 | Kind::UnixStream);
        // The sender alone, and with it the pending error.
        let from = match is_stream {
            true => None,
            false => Some(
                self.get(id)
                    .recv_from_with_flags(&mut [], libc::MSG_PEEK)
                    .map_err(errno)?
                    .1,
            ),
        };
        let mut flags = if is_stream {
            MsgFlags::empty()
        } else {
            MsgFlags::MSG_TRUNC
        };
        flags.set(MsgFlags::MSG_PEEK, peek);
        let capacity = buffer.len();
        let full = recv(self.get(id).as_raw_fd(), buffer, flags).map_err(|error| error as i32)?;
        let from = from.as_ref().map(from_kernel);
        Ok(Received {
            len: full.min(capacity),
            full,
            from,
        })
    }

    fn shutdown(&mut self, id: usize, how: Shutdown) -> Result<()> {
        self.get(id).shutdown(how).map_err(errno)
    }

    fn close(&mut self, id: usize) {
        self.sockets[id].0.take().expect("an open socket");
    }

    fn take_error(&mut self, id: usize) -> Result<Option<i32>> {
        self.get(id)
            .take_error()
            .map(|error| error.map(errno))
            .map_err(errno)
    }

    fn local_addr(&mut self, id: usize) -> Result<Address> {
        self.get(id)
            .local_addr()
            .map(|address| from_kernel(&address))
            .map_err(errno)
    }

    fn peer_addr(&mut self, id: usize) -> Result<Address> {
        self.get(id)
            .peer_addr()
            .map(|address| from_kernel(&address))
            .map_err(errno)
    }

    fn set(&mut self, id: usize, setting: Setting) -> Result<()> {
        let socket = self.get(id);
        match setting {
            Setting::ReuseAddress => socket.set_reuse_address(true),
            Setting::ReusePort => socket.set_reuse_port(true),
            Setting::Broadcast => socket.set_broadcast(true),
            Setting::ResetOnClose => socket.set_linger(Some(Duration::ZERO)),
            Setting::SendBuffer(bytes) => socket.set_send_buffer_size(bytes),
            Setting::ReceiveBuffer(bytes) => socket.set_recv_buffer_size(bytes),
        }
        .map_err(errno)
    }

    fn readiness(&mut self, id: usize) -> i16 {
        let events = PollFlags::POLLIN
            | PollFlags::POLLRDNORM
            | PollFlags::POLLOUT
            | PollFlags::POLLWRNORM
            | PollFlags::POLLWRBAND
            | PollFlags::POLLPRI;
        // The library does not know `POLLRDHUP`, and shows none of the answer if it is set.
        let peer_closed = PollFlags::from_bits_retain(libc::POLLRDHUP);
        let mut answers = [events, peer_closed].map(|events| {
            let mut fds = [PollFd::new(self.get(id).as_fd(), events)];
            nix::poll::poll(&mut fds, PollTimeout::ZERO).expect("a mask");
            fds[0].revents().map(|events| events.bits())
        });
        let is_closed = answers[1].take().is_none();
        answers[0].expect("known events") | if is_closed { libc::POLLRDHUP } else { 0 }
    }

    fn unlink(&mut self, path: &[u8]) {
        std::fs::remove_file(std::ffi::OsStr::from_bytes(path)).expect("a name");
    }

    fn pass(&mut self, time: Duration) {
        std::thread::sleep(time);
    }
}
