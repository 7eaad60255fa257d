//! Unix listeners: paths, backlogs, and that every connection is accepted once.

use std::os::linux::net::SocketAddrExt;

use socket2::{Domain, SockAddr, Socket, Type};

use super::unix_stream::impossible_paths;
use super::{io_kind, run};
use crate::common::prelude::*;

/// A path of its own, gone with everything in its directory in the end.
pub(super) struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("socket");
        Place {
            _directory: directory,
            path,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Another path beside it.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }
}

/// A listener whose queue, of one beside the first, is full.
pub(super) struct Full {
    place: Place,
    listener: Socket,
    clients: Vec<Socket>,
}

impl Full {
    pub(super) fn new() -> Self {
        let place = Place::new();
        let listener = Socket::new(Domain::UNIX, Type::STREAM, None).expect("sockets can be made");
        let address = SockAddr::unix(place.path()).expect("a short path");
        listener.bind(&address).expect("a free path");
        listener.listen(1).expect("it is bound");
        let clients = fill_backlog(&address);
        Full {
            place,
            listener,
            clients,
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Ready to accept the clients that fill it. They are gone.
    pub(super) fn into_listener(self) -> (Place, UnixListener) {
        (self.place, UnixListener::from(self.listener))
    }
}

/// Clients until the queue is full.
fn fill_backlog(address: &SockAddr) -> Vec<Socket> {
    let mut clients = Vec::new();
    loop {
        let client = Socket::new(Domain::UNIX, Type::STREAM, None).expect("sockets can be made");
        client.set_nonblocking(true).expect("any socket can");
        match client.connect(address) {
            Ok(()) => clients.push(client),
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                return clients;
            }
        }
    }
}

#[run_test]
async fn a_path_is_bound_once_and_stays() {
    let place = Place::new();
    let listener = UnixListener::bind(place.path())?;
    assert_eq!(listener.local_addr()?.as_pathname(), Some(place.path()));
    assert!(format!("{listener:?}").starts_with("UnixListener { fd: "));
    drop(listener);
    assert!(place.path().exists(), "nothing unlinks it");
    std::fs::write(place.beside("file"), b"precious")?;
    for taken in [place.path(), &place.beside("file")] {
        let error = UnixListener::bind(taken).expect_err("it exists");
        assert_eq!(io_kind(&error), io::ErrorKind::AddrInUse);
        assert_eq!(error.raw_os_error(), Some(libc::EADDRINUSE));
    }
    assert_eq!(std::fs::read(place.beside("file"))?, b"precious");
    for path in impossible_paths() {
        let error = UnixListener::bind(&path).expect_err("no such path");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput, "{path:?}");
    }
}

#[run_test]
async fn the_longest_path_is_a_path() {
    let place = Place::new();
    let mut path = place
        .beside("")
        .into_os_string()
        .into_string()
        .expect("ASCII");
    path.extend(std::iter::repeat_n('x', 107 - path.len()));
    let listener = UnixListener::bind(&path)?;
    assert_eq!(listener.local_addr()?.as_pathname(), Some(Path::new(&path)));
    let client = UnixStream::connect(&path).await?;
    assert_eq!(client.peer_addr()?.as_pathname(), Some(Path::new(&path)));
}

#[run_test]
async fn abstract_names_need_no_file() {
    // The kernel chooses one.
    let listener = UnixListener::bind("")?;
    let address = listener.local_addr()?;
    let name = address.as_abstract_name().expect("not a path");
    let path = format!("\0{}", std::str::from_utf8(name).expect("it is ASCII"));
    let taken = UnixListener::bind(&path).expect_err("it is taken");
    assert_eq!(io_kind(&taken), io::ErrorKind::AddrInUse);
    let client = UnixStream::connect(&path).await?;
    assert_eq!(client.peer_addr()?.as_abstract_name(), Some(name));
    drop(listener);
    let listener = UnixListener::bind(&path)?;
    assert_eq!(listener.local_addr()?.as_abstract_name(), Some(name));
}

#[run_test]
async fn so_many_connections_wait_to_be_accepted() {
    let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").expect("Linux");
    let limit: usize = somaxconn.trim().parse().expect("a number");
    let place = Place::new();
    let listener = UnixListener::bind(place.path())?;
    let clients = fill_backlog(&SockAddr::unix(place.path())?);
    // The kernel's limit is one less than it takes.
    assert_eq!(clients.len(), limit.min(128) + 1);
    drop(listener);
}

#[run_test]
async fn programs_that_are_started_inherit_no_socket() {
    fn is_closed_on_exec(socket: impl AsFd) -> io::Result<bool> {
        use nix::fcntl::{FcntlArg, FdFlag, fcntl};
        let flags = fcntl(socket, FcntlArg::F_GETFD)?;
        Ok(FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC))
    }
    let place = Place::new();
    let listener = UnixListener::bind(place.path())?;
    assert!(is_closed_on_exec(&listener)?);
    assert!(is_closed_on_exec(UnixStream::connect(place.path()).await?)?);
    assert!(is_closed_on_exec(listener.shared_accept().await?)?);
    let (one, other) = UnixStream::pair()?;
    assert!(is_closed_on_exec(one)? && is_closed_on_exec(other)?);
    let (one, other) = UnixDatagram::pair()?;
    assert!(is_closed_on_exec(one)? && is_closed_on_exec(other)?);
    assert!(is_closed_on_exec(UnixDatagram::unbound()?)?);
    assert!(is_closed_on_exec(UnixDatagram::bind(
        place.beside("datagrams")
    )?)?);

    let listener = TcpListener::bind("127.0.0.1:0")?;
    assert!(is_closed_on_exec(&listener)?);
    let client = TcpStream::connect(listener.local_addr()?).await?;
    assert!(is_closed_on_exec(client)?);
    assert!(is_closed_on_exec(listener.accept().await?)?);
    assert!(is_closed_on_exec(UdpSocket::bind("127.0.0.1:0")?)?);
}
