//! Unix datagrams: addresses of senders, full queues, and that no datagram is lost or changed.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixDatagram as StdDatagram;

use nix::sys::socket::UnixAddr;

use super::unix_listener::Place;
use super::unix_stream::impossible_paths;
use super::{Result, abandon, io_kind, run};
use crate::common::prelude::*;

/// A receiver at a path, and a sender that is neither bound nor connected.
pub(super) fn unconnected_pair() -> Result<(Place, UnixDatagram, Rc<UnixDatagram>)> {
    let place = Place::new();
    let receiver = UnixDatagram::bind(place.path())?;
    let sender = UnixDatagram::unbound()?;
    Ok((place, receiver, Rc::new(sender)))
}

#[run_test]
async fn a_pair_exchanges_datagrams() {
    let (one, other) = UnixDatagram::pair()?;
    assert!(one.local_addr()?.is_unnamed() && one.peer_addr()?.is_unnamed());
    let mut buf = [0; 16];
    for length in [3, 0, 16] {
        assert_eq!(one.send(&[7; 16][..length]).await?, length);
        assert_eq!(other.peek(&mut buf).await?, length);
        assert_eq!(other.recv(&mut buf).await?, length);
        assert_eq!(buf[..length], [7; 16][..length]);
    }
    other.send(b"12345").await?;
    other.send(b"next").await?;
    assert_eq!(one.recv(&mut buf[..2]).await?, 2, "the rest is gone");
    assert_eq!(one.recv(&mut []).await?, 0, "and so is this one");
    abandon(one.recv(&mut buf)).await;
    assert!(format!("{one:?}").starts_with("UnixDatagram { fd: "));
}

#[run_test]
async fn only_peeking_needs_a_peer() {
    let (place, receiver, sender) = unconnected_pair()?;
    let mut buf = [0; 8];
    for error in [
        receiver.peek(&mut buf).await.map(|_| ()),
        receiver.peer_addr().map(|_| ()),
        sender.send(b"to whom?").await.map(|_| ()),
    ] {
        let error = error.expect_err("there is no peer");
        assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
    }
    sender.send_to(b"first", place.path()).await?;
    assert_eq!(receiver.recv(&mut buf).await?, 5);
    sender.connect(place.path()).await?;
    assert_eq!(sender.peer_addr()?.as_pathname(), Some(place.path()));
    sender.send(b"second").await?;
    assert_eq!(receiver.recv(&mut buf).await?, 6);
    // No socket can write to it, but it waits.
    abandon(sender.recv(&mut buf)).await;
    abandon(sender.peek(&mut buf)).await;
}

#[run_test]
async fn a_peer_that_goes_is_no_peer_any_more() {
    let (place, receiver, sender) = unconnected_pair()?;
    sender.connect(place.path()).await?;
    sender.send(b"unread").await?;
    drop(receiver);
    let error = sender.send(b"x").await.expect_err("it was closed");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
    let error = sender.peek(&mut [0]).await.expect_err("there is no peer");
    assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
    let error = sender.send_to(b"x", place.path()).await;
    let error = error.expect_err("a file, but no socket");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
}

#[run_test]
async fn paths_that_cannot_be_are_refused_everywhere() {
    let place = Place::new();
    let socket = UnixDatagram::bind(place.path())?;
    let error = UnixDatagram::bind(place.path()).expect_err("it exists");
    assert_eq!(io_kind(&error), io::ErrorKind::AddrInUse);
    for path in impossible_paths() {
        for error in [
            UnixDatagram::bind(&path).map(|_| ()),
            socket.connect(&path).await,
            socket.send_to(b"x", &path).await.map(|_| ()),
        ] {
            let error = error.expect_err("no such path");
            assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }
    let error = socket.connect(place.beside("nothing")).await;
    let error = error.expect_err("there is nothing");
    assert_eq!(io_kind(&error), io::ErrorKind::NotFound);
    let error = socket.send_to(b"x", "").await.expect_err("no address");
    assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
    drop(socket);
    assert!(place.path().exists(), "nothing unlinks it");
}

/// What is received from `sender`, which sends one datagram for each: at once and after a wait,
/// taken and looked at.
async fn seen_from(sender: UnixDatagram) -> Result<Vec<UnixAddr>> {
    let place = Place::new();
    let receiver = UnixDatagram::bind(place.path())?;
    let mut buf = [0; 8];
    let mut seen = Vec::new();
    for waits in [false, true] {
        for peeks in [true, false] {
            let path = place.path().to_owned();
            let receive = async {
                if peeks {
                    receiver.peek_from(&mut buf).await
                } else {
                    receiver.recv_from(&mut buf).await
                }
            };
            let send = async {
                if waits {
                    sleep(Duration::from_millis(2)).await;
                }
                sender.send_to(b"from?", path).await
            };
            let (length, address) = if waits {
                let (received, sent) = futures_lite::future::zip(receive, send).await;
                sent?;
                received?
            } else {
                send.await?;
                receive.await?
            };
            assert_eq!(length, 5);
            seen.push(address);
            if peeks {
                assert_eq!(receiver.recv(&mut [0; 8]).await?, 5);
            }
        }
    }
    Ok(seen)
}

#[run_test]
async fn a_sender_without_a_name_has_none() {
    for address in seen_from(UnixDatagram::unbound()?).await? {
        assert_eq!((address.path(), address.as_abstract()), (None, None));
        assert!(address.is_unnamed());
        assert_eq!(address, UnixAddr::new_unnamed());
        assert!(!format!("{address:?} {address}").is_empty(), "no panic");
    }
}

#[run_test]
async fn a_sender_with_a_path_shows_it() {
    let place = Place::new();
    for address in seen_from(UnixDatagram::bind(place.path())?).await? {
        assert_eq!(address.path(), Some(place.path()));
        assert_eq!(address.as_abstract(), None);
    }
}

/// What lay in memory before is no part of the address, and what is no Unix socket has none.
#[run_test]
async fn what_is_no_datagram_socket_shows_no_earlier_sender() {
    let place = Place::new();
    let named = UnixDatagram::bind(place.path())?;
    let receiver = UnixDatagram::bind(place.beside("receiver"))?;
    let (unix, mut unix_peer) = std::os::unix::net::UnixStream::pair()?;
    let (tcp, mut tcp_peer) = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let peer = std::net::TcpStream::connect(listener.local_addr()?)?;
        (listener.accept()?.0, peer)
    };
    let unix = UnixDatagram::from(socket2::Socket::from(unix));
    let tcp = UnixDatagram::from(socket2::Socket::from(tcp));
    io::Write::write_all(&mut unix_peer, b"x")?;
    io::Write::write_all(&mut tcp_peer, b"x")?;
    for connection in [unix, tcp] {
        named
            .send_to(b"from named", place.beside("receiver"))
            .await?;
        let (_, sender) = receiver.recv_from(&mut [0; 16]).await?;
        assert_eq!(sender.path(), Some(place.path()));
        let (bytes, sender) = connection.recv_from(&mut [0; 16]).await?;
        assert_eq!((bytes, sender), (1, UnixAddr::new_unnamed()));
    }
}

/// Without an end of its own in what the kernel writes, as long as it gets.
#[run_test]
async fn the_longest_path_with_a_nul_is_shown_whole() {
    let place = Place::new();
    let mut path = place.beside("").into_os_string().into_encoded_bytes();
    path.resize(107, b'x');
    let path = PathBuf::from(String::from_utf8(path).expect("ASCII"));
    for address in seen_from(UnixDatagram::bind(&path)?).await? {
        assert_eq!(address.path(), Some(&*path));
    }
}

#[run_test]
async fn a_sender_with_an_abstract_name_shows_it() {
    let sender = UnixDatagram::bind("")?;
    let bound = sender.local_addr()?;
    let name = bound.as_abstract_name().expect("the kernel chose one");
    for address in seen_from(sender).await? {
        assert_eq!((address.path(), address.as_abstract()), (None, Some(name)));
    }
    // As long as they come, with bytes that are no text, NUL among them.
    let mut name = vec![0xff; 108];
    (name[0], name[50]) = (0, 0);
    let path = PathBuf::from(
        <std::ffi::OsString as std::os::unix::ffi::OsStringExt>::from_vec(name.clone()),
    );
    for address in seen_from(UnixDatagram::bind(path)?).await? {
        assert_eq!(address.as_abstract(), Some(&name[1..]));
    }
}

/// The kernel takes paths that leave no room for a NUL, and gives lengths beyond its own structure
/// for them. No safe function makes such an address.
#[run_test]
async fn a_path_without_room_for_a_nul_is_shown_whole() {
    let place = Place::new();
    let mut path = place.beside("").into_os_string().into_encoded_bytes();
    path.resize(108, b'x');
    let plain = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::DGRAM, None)?;
    // SAFETY: all zero is a socket address; the family is set below.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, from) in address.sun_path.iter_mut().zip(&path) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: the pointer is to an address of this size, and the descriptor is open.
    let bound = unsafe { libc::bind(plain.as_raw_fd(), (&raw const address).cast(), size) };
    assert_eq!(bound, 0, "{}", io::Error::last_os_error());
    let path = Path::new(std::str::from_utf8(&path).expect("ASCII"));
    let sender = UnixDatagram::from(plain);
    assert_eq!(sender.local_addr()?.as_pathname(), Some(path));
    for address in seen_from(sender).await? {
        assert_eq!(address.path(), Some(path));
    }
}

#[test]
fn foreign_sockets_work_blocking_or_not_and_go_back() {
    for nonblocking in [false, true] {
        run(async move {
            let (plain, peer) = StdDatagram::pair()?;
            plain.set_nonblocking(nonblocking)?;
            let socket = UnixDatagram::from(plain);
            assert_eq!(socket.as_fd().as_raw_fd(), socket.as_raw_fd());
            let received = spawn_local(async move {
                let mut buf = [0; 4];
                socket.recv(&mut buf).await.map(|_| (socket, buf))
            });
            sleep(Duration::from_millis(2)).await;
            peer.send(b"ping")?;
            let (socket, buf) = received.await?;
            assert_eq!(&buf, b"ping");
            let is_finished = Rc::new(Cell::new(false));
            let finished = Rc::clone(&is_finished);
            let sending = spawn_local(async move {
                for _ in 0..1000 {
                    socket.send(&[b'x'; 1000]).await?;
                }
                finished.set(true);
                Ok::<_, GlommioError<()>>(socket)
            });
            sleep(Duration::from_millis(5)).await;
            assert!(!is_finished.get(), "it waits in either mode");
            let mut buf = [0; 1000];
            let reading = std::thread::spawn(move || {
                for _ in 0..1000 {
                    assert_eq!(peer.recv(&mut buf).expect("it is open"), 1000);
                }
                peer
            });
            let socket = sending.await?;
            let peer = reading.join().expect("no panic");
            // SAFETY: the descriptor has just been given up by its owner.
            let again = unsafe { UnixDatagram::from_raw_fd(socket.into_raw_fd()) };
            peer.send(b"pong")?;
            assert_eq!(again.recv(&mut [0; 8]).await?, 4);
            // SAFETY: as above.
            let plain = unsafe { OwnedFd::from_raw_fd(again.into_raw_fd()) };
            StdDatagram::from(plain).send(b"done")?;
            Ok(())
        });
    }
}
