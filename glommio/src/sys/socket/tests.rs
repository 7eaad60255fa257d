use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::*;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
    let address = listener.local_addr().expect("it is bound");
    let client = TcpStream::connect(address).expect("it listens");
    let (server, _) = listener.accept().expect("a client came");
    (client, server)
}

fn wait_for_input(socket: &TcpStream) {
    wait_for(socket, PollFlags::POLLIN);
}

fn wait_for(socket: &TcpStream, events: PollFlags) {
    let mut polled = [PollFd::new(socket.as_fd(), events)];
    poll(&mut polled, PollTimeout::NONE).expect("there is one descriptor");
}

#[test]
fn data_goes_through_as_it_is() {
    let (client, server) = pair();
    let (client, server) = (client.as_raw_fd(), server.as_raw_fd());
    let mut buf = [0; 8];
    let empty = receive(server, &mut buf).expect_err("nothing was sent");
    assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
    assert_eq!(send(client, b"hello").expect("there is room"), 5);
    let received = loop {
        match receive(server, &mut buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => break received.expect("the connection is up"),
        }
    };
    assert_eq!(&buf[..received], b"hello");
}

#[test]
fn a_peer_that_is_gone_is_an_error_and_no_signal() {
    let (client, server) = pair();
    drop(server);
    let error = loop {
        if let Err(error) = send(client.as_raw_fd(), b"x") {
            break error;
        }
    };
    assert!(matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    ));
}

/// A control message as the kernel writes it.
fn told(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Control {
    let mut control = Control::zeroed();
    control.header.cmsg_len = (size_of::<libc::cmsghdr>() + data.len()) as _;
    (control.header.cmsg_level, control.header.cmsg_type) = (level, kind);
    control.data[..data.len()].copy_from_slice(data);
    control
}

const WHOLE: usize = size_of::<Control>();
const HEADER: usize = size_of::<libc::cmsghdr>();

fn record(kind: &[u8]) -> Control {
    told(libc::SOL_TLS, libc::TLS_GET_RECORD_TYPE, kind)
}

#[test]
fn only_a_whole_report_tells_the_type_of_a_record() {
    for kind in [21, 22, 23] {
        assert_eq!(record(&[kind]).record_kind(WHOLE), Some(kind));
        assert_eq!(record(&[kind]).record_kind(HEADER + 1), Some(kind));
        assert_eq!(record(&[kind]).record_kind(HEADER), None);
        assert_eq!(record(&[kind]).record_kind(0), None);
    }
    let other = told(libc::SOL_SOCKET, libc::TLS_GET_RECORD_TYPE, &[22]);
    for other in [record(&[]), record(&[22, 22]), other] {
        assert_eq!(other.record_kind(WHOLE), None);
    }
}

#[test]
fn a_connection_names_no_sender() {
    let (mut client, server) = pair();
    client.write_all(b"hello").expect("there is room");
    wait_for_input(&server);
    let mut buf = [0; 8];
    for flags in [libc::MSG_PEEK, 0] {
        let received = receive_from(server.as_raw_fd(), &mut buf, flags);
        let (bytes, address) = received.expect("the connection is up");
        assert_eq!((bytes, &buf[..5]), (5, &b"hello"[..]));
        assert_eq!((address.len(), address.family()), (0, 0));
    }
    let empty = receive_from(server.as_raw_fd(), &mut buf, 0).expect_err("it was taken");
    assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_socket_without_an_upper_layer_has_none() {
    let (client, _server) = pair();
    assert!(!has_upper_layer(client.as_fd()).expect("TCP knows the option"));
    let (unix, _other) = std::os::unix::net::UnixStream::pair().expect("descriptors are free");
    has_upper_layer(unix.as_fd()).expect_err("only TCP knows the option");
}

#[test]
fn urgent_data_is_told_until_it_was_passed() {
    let (mut client, mut server) = pair();
    let fd = server.as_raw_fd();
    client.write_all(b"1").expect("there is room");
    wait_for_input(&server);
    assert!(!has_urgent_data(fd));
    let sent = socket2::SockRef::from(&client).send_out_of_band(b"!");
    sent.expect("there is room");
    wait_for(&server, PollFlags::POLLPRI);
    assert!(has_urgent_data(fd));
    client.write_all(b"2").expect("there is room");
    server.read_exact(&mut [0]).expect("it was sent");
    assert!(has_urgent_data(fd), "the receive has stopped before it");
    server.read_exact(&mut [0]).expect("it was sent");
    assert!(!has_urgent_data(fd));
}
