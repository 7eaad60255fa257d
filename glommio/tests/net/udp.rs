//! UDP.

use std::net::{Ipv6Addr, UdpSocket as StdSocket};

use super::{PATIENCE, Result, abandon, io_kind, run};
use crate::common::prelude::*;

/// Two sockets, each the other's peer.
async fn peers() -> Result<(UdpSocket, UdpSocket)> {
    let one = UdpSocket::bind("127.0.0.1:0")?;
    let two = UdpSocket::bind("127.0.0.1:0")?;
    one.connect(two.local_addr()?).await?;
    two.connect(one.local_addr()?).await?;
    Ok((one, two))
}

#[run_test]
async fn without_a_peer_receiving_from_it_fails_at_once() {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let mut buf = [0; 8];
    for error in [
        socket.recv(&mut buf).await.map(|_| ()),
        socket.peek(&mut buf).await.map(|_| ()),
        socket.peer_addr().map(|_| ()),
    ] {
        let error = error.expect_err("there is no peer");
        assert_eq!(io_kind(&error), io::ErrorKind::NotConnected);
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
    }
    let error = socket
        .send(b"to whom?")
        .await
        .expect_err("there is no peer");
    assert_eq!(error.raw_os_error(), Some(libc::EDESTADDRREQ));
}

#[run_test]
async fn datagrams_of_other_senders_are_not_received() {
    let (one, two) = peers().await?;
    let other = UdpSocket::bind("127.0.0.1:0")?;
    other.send_to(b"me first", one.local_addr()?).await?;
    two.send(b"friend").await?;
    let mut buf = [0; 16];
    let count = one.recv(&mut buf).await?;
    assert_eq!(&buf[..count], b"friend");
    abandon(one.recv(&mut buf)).await;
}

#[run_test]
async fn too_long_a_datagram_is_refused() {
    let (one, _two) = peers().await?;
    let error = one
        .send(&vec![0; 65_508])
        .await
        .expect_err("too long for IPv4");
    assert_eq!(error.raw_os_error(), Some(libc::EMSGSIZE));
}

#[run_test]
async fn a_closed_port_is_reported_later() {
    let (one, two) = peers().await?;
    drop(two);
    one.send(b"anybody there?").await?;
    let error = one.recv(&mut [0; 8]).await.expect_err("the port is closed");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
}

#[run_test]
async fn connecting_tries_all_addresses_and_needs_one() {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let target = UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let nothing: &[SocketAddr] = &[];
    let error = socket.connect(nothing).await.expect_err("no address");
    assert_eq!(io_kind(&error), io::ErrorKind::Other);
    assert!(error.to_string().contains("No Valid addresses"), "{error}");
    // The first is of another family, which an IPv4 socket cannot connect to.
    let addresses = [SocketAddr::from((Ipv6Addr::LOCALHOST, 9)), target];
    socket.connect(&addresses[..]).await?;
    assert_eq!(socket.peer_addr()?, target);
}

#[run_test]
async fn options_read_back_what_was_set() {
    let mut socket = UdpSocket::bind("127.0.0.1:0")?;
    assert!(!socket.broadcast()?);
    socket.set_broadcast(true)?;
    assert!(socket.broadcast()?);
    assert!(socket.multicast_loop_v4()?);
    socket.set_multicast_loop_v4(false)?;
    assert!(!socket.multicast_loop_v4()?);
    assert_eq!(socket.multicast_ttl_v4()?, 1);
    socket.set_multicast_ttl_v4(7)?;
    assert_eq!(socket.multicast_ttl_v4()?, 7);
    assert_eq!(socket.buffer_size(), 8192);
    socket.set_buffer_size(100);
    assert_eq!(socket.buffer_size(), 100);
}

#[run_test]
async fn multicast_groups_are_joined_and_left() {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let group = Ipv4Addr::new(224, 0, 0, 123);
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
    socket.leave_multicast_v4(&group, &Ipv4Addr::LOCALHOST)?;
    let again = socket.leave_multicast_v4(&group, &Ipv4Addr::LOCALHOST);
    let error = again.expect_err("it has left");
    assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL));

    let socket = match UdpSocket::bind("[::]:0") {
        Ok(socket) => socket,
        Err(error) => {
            skipped(format_args!("there is no IPv6 here: {error}"));
            return Ok(());
        }
    };
    assert!(socket.multicast_loop_v6()?);
    socket.set_multicast_loop_v6(false)?;
    assert!(!socket.multicast_loop_v6()?);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x123);
    socket.join_multicast_v6(&group, 1)?;
    socket.leave_multicast_v6(&group, 1)?;
    let error = socket
        .leave_multicast_v6(&group, 1)
        .expect_err("it has left");
    assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL));
}

/// A pair whose queue fills up, which those of UDP never do on one host.
pub(super) fn local_pair() -> io::Result<(UdpSocket, UdpSocket)> {
    use socket2::{Domain, Socket, Type};
    let (one, two) = Socket::pair(Domain::UNIX, Type::DGRAM, None)?;
    Ok((UdpSocket::from(one), UdpSocket::from(two)))
}

/// The kernel gives no sender with what a connection receives; what an earlier receive left in
/// memory is none.
#[run_test]
async fn a_connection_taken_for_a_udp_socket_shows_no_earlier_sender() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let mut peer = std::net::TcpStream::connect(listener.local_addr()?)?;
    let connection = UdpSocket::from(socket2::Socket::from(listener.accept()?.0));
    let (one, two) = peers().await?;
    let is_refused = |received: Result<(usize, SocketAddr)>| {
        let error = received.expect_err("there is no sender");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("is not a UDP socket"), "{error}");
    };
    let mut buf = [0; 8];
    for waits in [false, true] {
        two.send(b"from two").await?;
        assert_eq!(one.recv_from(&mut buf).await?, (8, two.local_addr()?));
        let mut receive = pin!(connection.peek_from(&mut buf));
        if waits {
            assert!(poll_once(&mut receive).await.is_none());
        }
        io::Write::write_all(&mut peer, b"x")?;
        is_refused(receive.await);
        is_refused(connection.recv_from(&mut [0; 8]).await);
    }
    // The end of the connection is no datagram either.
    drop(peer);
    is_refused(connection.recv_from(&mut [0; 8]).await);
}

/// A program may make its sockets before its executor.
#[test]
fn a_socket_made_outside_of_executors_belongs_to_the_first_that_uses_it() {
    let socket = UdpSocket::from(StdSocket::bind("127.0.0.1:0").expect("a port is free"));
    let bound = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let (pair, _other) = UnixDatagram::pair().expect("descriptors are free");
    socket
        .set_read_timeout(Some(PATIENCE))
        .expect("it is no zero");
    run(async {
        let mut buf = [0; 8];
        assert!(poll_once(pair.recv(&mut buf)).await.is_none());
        // The wait is one in the ring of this executor.
        assert!(poll_once(socket.recv_from(&mut buf)).await.is_none());
        let receiving = async { socket.recv_from(&mut buf).await };
        let sending = async {
            sleep(Duration::from_millis(1)).await;
            bound.send_to(b"late", socket.local_addr()?).await
        };
        let (received, sent) = futures_lite::future::zip(receiving, sending).await;
        assert_eq!((received?, sent?), ((4, bound.local_addr()?), 4));
        Ok(())
    });
    // That executor is gone, and the socket does not go over to another one.
    run(async {
        let mut buf = [0; 8];
        let error = socket.recv_from(&mut buf).await.expect_err("it is gone");
        assert_eq!(io_kind(&error), std::io::ErrorKind::NotConnected);
        Ok(())
    });
}

#[test]
fn a_socket_that_never_met_an_executor_is_dropped_without_harm() {
    // An address at which no other test takes the port meanwhile.
    let socket = StdSocket::bind("127.0.0.3:0").expect("a port is free");
    let address = socket.local_addr().expect("it is bound");
    drop(UdpSocket::from(socket));
    StdSocket::bind(address).expect("the port is free again");
}
