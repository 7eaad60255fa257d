use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
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

/// As `receive_all`, once something has come.
fn wait_and_receive(socket: &TcpStream, buf: &mut [u8]) -> (usize, bool) {
    loop {
        match receive_all(socket.as_raw_fd(), buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received.expect("the connection is up"),
        }
    }
}

/// Waits until the peer's end of the stream is there, maybe behind data.
fn wait_for_end(socket: &TcpStream) {
    wait_for(socket, PollFlags::from_bits_retain(libc::POLLRDHUP));
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

#[test]
fn a_socket_tells_whether_it_is_empty() {
    let (mut client, server) = pair();
    set_reports_rest(server.as_fd(), true).expect("TCP can tell");
    client.write_all(b"12345").expect("there is room");
    let mut buf = [0; 2];
    assert_eq!(wait_and_receive(&server, &mut buf), (2, false));
    assert_eq!(wait_and_receive(&server, &mut buf), (2, false));
    assert_eq!(wait_and_receive(&server, &mut buf), (1, true));
    client.write_all(b"67").expect("there is room");
    assert_eq!(wait_and_receive(&server, &mut buf), (2, true));
    // The end is something to receive, also if it came with the data.
    client.write_all(b"89").expect("there is room");
    client.shutdown(Shutdown::Write).expect("it is connected");
    wait_for_end(&server);
    let (bytes, is_empty) = wait_and_receive(&server, &mut buf);
    assert_eq!(bytes, 2);
    assert!(!is_empty, "the end is there to be received");
    assert_eq!(wait_and_receive(&server, &mut buf), (0, false));
}

#[test]
fn a_socket_that_does_not_tell_is_not_known_to_be_empty() {
    let (mut client, server) = pair();
    client.write_all(b"1").expect("there is room");
    assert_eq!(wait_and_receive(&server, &mut [0; 8]), (1, false));
    let (unix, _other) = std::os::unix::net::UnixStream::pair().expect("descriptors are free");
    set_reports_rest(unix.as_fd(), true).expect_err("only TCP can tell");
    set_reports_rest(server.as_fd(), true).expect("TCP can tell");
    set_reports_rest(server.as_fd(), false).expect("TCP can stop telling");
    client.write_all(b"2").expect("there is room");
    assert_eq!(wait_and_receive(&server, &mut [0; 8]), (1, false));
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

fn left(rest: libc::c_int) -> Control {
    told(libc::SOL_TCP, libc::TCP_CM_INQ, &rest.to_ne_bytes())
}

fn record(kind: &[u8]) -> Control {
    told(libc::SOL_TLS, libc::TLS_GET_RECORD_TYPE, kind)
}

#[test]
fn only_a_whole_report_tells_the_rest() {
    let rest = |control: Control, written, flags| {
        control
            .rest(written, flags)
            .expect("it is not about a record")
    };
    for number in [0, 1, 70_000] {
        assert_eq!(rest(left(number), WHOLE, 0), Some(number));
        assert_eq!(rest(left(number), HEADER + 4, 0), Some(number));
    }
    // Zeros that the kernel has not written are no report.
    for written in 0..HEADER + 4 {
        assert_eq!(rest(left(0), written, 0), None, "{written}");
    }
    assert_eq!(rest(left(0), WHOLE, libc::MSG_CTRUNC), None);
    for length in (0..HEADER + 4).chain([HEADER + 8, usize::MAX]) {
        let mut report = left(0);
        report.header.cmsg_len = length as _;
        assert_eq!(rest(report, WHOLE, 0), None, "{length}");
    }
    // What others have asked for on this socket.
    let zeros = 0_i32.to_ne_bytes();
    for (level, kind) in [
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMP),
        (libc::SOL_SOCKET, libc::TCP_CM_INQ),
        (libc::SOL_TCP, libc::SCM_TIMESTAMP),
    ] {
        assert_eq!(rest(told(level, kind, &zeros), WHOLE, 0), None);
    }
}

#[test]
fn only_a_whole_report_tells_the_type_of_a_record() {
    for kind in [21, 22, TLS_APPLICATION_DATA] {
        assert_eq!(record(&[kind]).record_kind(WHOLE), Some(kind));
        assert_eq!(record(&[kind]).record_kind(HEADER + 1), Some(kind));
        assert_eq!(record(&[kind]).record_kind(HEADER), None);
        assert_eq!(record(&[kind]).record_kind(0), None);
    }
    for other in [record(&[]), record(&[22, 22]), left(22)] {
        assert_eq!(other.record_kind(WHOLE), None);
    }
}

#[test]
fn a_record_that_is_not_data_is_an_error() {
    let error = |control: Control, written, flags| {
        let rest = control.rest(written, flags);
        rest.map_err(|error| error.raw_os_error())
    };
    // Alerts, handshake messages such as session tickets, and what else may come.
    for kind in (0..=u8::MAX).filter(|kind| *kind != 23) {
        for flags in [0, libc::MSG_CTRUNC] {
            assert_eq!(error(record(&[kind]), WHOLE, flags), Err(Some(libc::EIO)));
        }
    }
    assert_eq!(error(record(&[23]), WHOLE, 0), Ok(None));
    assert_eq!(error(record(&[23]), HEADER + 1, 0), Ok(None));
    // Of which kind it is was cut off.
    assert_eq!(error(record(&[]), WHOLE, 0), Err(Some(libc::EIO)));
    assert_eq!(error(record(&[23]), HEADER, 0), Err(Some(libc::EIO)));
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
