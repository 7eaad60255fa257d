//! Options of sockets: what is set is what the kernel says, and what it does.

use std::fmt::Debug;
use std::io::{Read, Write};

use socket2::{Domain, SockRef, Socket, Type};

use super::{Result, io_kind, pair, pair_with_std, run};
use crate::common::prelude::*;

/// Sets each of `values` in turn, and reads it back.
fn round_trip<T: Debug + Copy + PartialEq>(
    set: impl Fn(T) -> Result,
    get: impl Fn() -> Result<T>,
    values: &[T],
) -> Result {
    for &value in values {
        set(value)?;
        assert_eq!(get()?, value);
    }
    Ok(())
}

/// The options that sockets of all families have.
macro_rules! check_options_of_all {
    ($socket:expr) => {{
        let socket = $socket;
        // The kernel doubles what it is asked for.
        socket.set_recv_buffer_size(16 << 10)?;
        socket.set_send_buffer_size(48 << 10)?;
        assert_eq!(socket.recv_buffer_size()?, 32 << 10);
        assert_eq!(socket.send_buffer_size()?, 96 << 10);
        assert_eq!(SockRef::from(socket).recv_buffer_size()?, 32 << 10);
        assert_eq!(SockRef::from(socket).send_buffer_size()?, 96 << 10);
        assert!(socket.take_error()?.is_none());
        // As much as it allows, however much more is asked for than the option can say.
        socket.set_recv_buffer_size(i32::MAX as usize)?;
        socket.set_send_buffer_size(i32::MAX as usize)?;
        let most = (socket.recv_buffer_size()?, socket.send_buffer_size()?);
        for size in [i32::MAX as usize + 1, usize::MAX / 2 + 1, usize::MAX] {
            socket.set_recv_buffer_size(size)?;
            socket.set_send_buffer_size(size)?;
            let sizes = (socket.recv_buffer_size()?, socket.send_buffer_size()?);
            assert_eq!(sizes, most, "{size}");
        }
    }};
}

/// Those of TCP and UDP, on a socket of whatever kind.
macro_rules! check_common_options {
    ($socket:expr) => {{
        let socket = $socket;
        check_options_of_all!(socket);
        round_trip(|ttl| socket.set_ttl(ttl), || socket.ttl(), &[1, 255])?;
        assert_eq!(socket.tos()?, 0);
        round_trip(|tos| socket.set_tos(tos), || socket.tos(), &[0x10, 0xfc, 0])?;
    }};
}

#[run_test]
async fn unix_sockets_have_the_options_of_all() {
    check_options_of_all!(&UnixListener::bind("")?);
    let (stream, _peer) = UnixStream::pair()?;
    check_options_of_all!(&stream);
    check_options_of_all!(&stream.buffered());
    check_options_of_all!(&UnixDatagram::unbound()?);
}

#[run_test]
async fn streams_have_the_common_options() {
    let (client, server) = pair().await?;
    check_common_options!(&client);
    check_common_options!(&server.buffered());
}

#[run_test]
async fn listeners_have_the_common_options() {
    check_common_options!(&TcpListener::bind("127.0.0.1:0")?);
}

#[run_test]
async fn udp_sockets_have_the_common_options() {
    check_common_options!(&UdpSocket::bind("127.0.0.1:0")?);
}

#[run_test]
async fn connections_inherit_the_options_of_their_listener() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_recv_buffer_size(20 << 10)?;
    listener.set_send_buffer_size(24 << 10)?;
    listener.set_tos(0x20)?;
    listener.set_ttl(17)?;
    let _client = TcpStream::connect(listener.local_addr()?).await?;
    let server = listener.accept().await?;
    assert_eq!(server.recv_buffer_size()?, 40 << 10);
    assert_eq!(server.send_buffer_size()?, 48 << 10);
    assert_eq!(server.tos()?, 0x20);
    assert_eq!(server.ttl()?, 17);
}

/// Of a socket of IPv6, what applies to peers of either version.
fn assert_tos(socket: &impl AsFd, expected: u32) -> Result {
    let socket = SockRef::from(socket);
    assert_eq!(socket.tclass_v6()?, expected);
    assert_eq!(socket.tos_v4()?, expected);
    Ok(())
}

#[run_test]
async fn on_ipv6_the_type_of_service_is_the_traffic_class() {
    let Ok(socket) = UdpSocket::bind("[::1]:0") else {
        skipped("there is no IPv6 here");
        return Ok(());
    };
    round_trip(|tos| socket.set_tos(tos), || socket.tos(), &[0xff, 0x28])?;
    assert_tos(&socket, 0x28)?;
    // Not by what is set for IPv4.
    SockRef::from(&socket).set_tos_v4(0x10)?;
    assert_eq!(socket.tos()?, 0x28);
    let listener = TcpListener::bind("[::1]:0")?;
    round_trip(|tos| listener.set_tos(tos), || listener.tos(), &[0x48, 0])?;
    let stream = TcpStream::connect(listener.local_addr()?).await?;
    stream.set_tos(0x50)?;
    assert_tos(&stream, 0x50)
}

#[run_test]
async fn a_bound_socket_tells_whether_it_is_closed_to_ipv4() {
    for only_v6 in [false, true] {
        let make = |kind| {
            let socket = Socket::new(Domain::IPV6, kind, None)?;
            socket.set_only_v6(only_v6)?;
            Ok::<_, io::Error>(socket)
        };
        let (Ok(stream), Ok(datagram)) = (make(Type::STREAM), make(Type::DGRAM)) else {
            skipped("there is no IPv6 here");
            return Ok(());
        };
        assert_eq!(TcpListener::from(stream).only_v6()?, only_v6);
        assert_eq!(UdpSocket::from(datagram).only_v6()?, only_v6);
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.only_v6().expect_err("it is a socket of IPv4");
}

#[run_test]
async fn linger_is_rounded_up_to_seconds() {
    let (stream, _peer) = pair().await?;
    assert_eq!(stream.linger()?, None);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let values = [seconds(3), seconds(0), None];
    round_trip(|time| stream.set_linger(time), || stream.linger(), &values)?;
    // Rounded down it would be zero, which resets the connection.
    stream.set_linger(Some(Duration::from_nanos(1)))?;
    assert_eq!(stream.linger()?, seconds(1));
    stream.set_linger(Some(Duration::from_millis(2500)))?;
    assert_eq!(stream.linger()?, seconds(3));
    // Cut to the kernel's 32 bits it would be zero, too.
    for long in [Duration::from_secs(1 << 32), Duration::MAX] {
        stream.set_linger(Some(long))?;
        assert!(stream.linger()? > seconds(1 << 20));
    }
    stream.set_linger(None)
}

#[run_test]
async fn without_time_to_linger_dropping_resets() {
    let (stream, mut peer) = pair_with_std().await?;
    stream.set_linger(Some(Duration::ZERO))?;
    drop(stream);
    let error = peer
        .read(&mut [0; 1])
        .expect_err("the connection was reset");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[run_test]
async fn keepalive_is_off_at_first_and_rounded_up_to_seconds() {
    let (stream, _peer) = pair().await?;
    assert_eq!(stream.keepalive()?, None);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let values = [seconds(1), seconds(32_767), None];
    round_trip(
        |idle| stream.set_keepalive(idle),
        || stream.keepalive(),
        &values,
    )?;
    stream.set_keepalive(Some(Duration::from_millis(1001)))?;
    assert_eq!(stream.keepalive()?, seconds(2));
    assert!(SockRef::from(&stream).keepalive()?);
}

#[run_test]
async fn keepalive_that_cannot_be_had_changes_nothing() {
    let (stream, _peer) = pair().await?;
    for before in [None, Some(Duration::from_secs(60))] {
        stream.set_keepalive(before)?;
        for wrong in [0, 32_768, u64::MAX] {
            let error = stream
                .set_keepalive(Some(Duration::from_secs(wrong)))
                .expect_err("out of the kernel's range");
            assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
            assert_eq!(stream.keepalive()?, before);
        }
    }
}

#[run_test]
async fn quickack_and_nodelay_can_be_turned_on_and_off() {
    let (stream, _peer) = pair().await?;
    let values = [false, true, false];
    round_trip(|on| stream.set_quickack(on), || stream.quickack(), &values)?;
    assert!(!stream.nodelay()?);
    let values = [true, false];
    round_trip(|on| stream.set_nodelay(on), || stream.nodelay(), &values)
}

/// What `take` gives as soon as it gives something.
async fn error_of(take: impl Fn() -> Result<Option<io::Error>>) -> Result<io::Error> {
    loop {
        if let Some(error) = take()? {
            return Ok(error);
        }
        sleep(Duration::from_millis(1)).await;
    }
}

#[run_test]
async fn an_error_is_taken_once() {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    // Its port is taken, and with a peer of its own it receives nothing from here.
    let deaf = std::net::UdpSocket::bind("127.0.0.1:0")?;
    deaf.connect(deaf.local_addr()?)?;
    socket.connect(deaf.local_addr()?).await?;
    socket.send(b"anybody there?").await?;
    let error = error_of(|| socket.take_error()).await?;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    assert!(socket.take_error()?.is_none());

    let (mut stream, peer) = pair_with_std().await?;
    SockRef::from(&peer).set_linger(Some(Duration::ZERO))?;
    drop(peer);
    let error = error_of(|| stream.take_error()).await?;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(stream.read(&mut [0; 1]).await?, 0, "the error was taken");
}

#[run_test]
async fn multicasts_are_sent_on_the_interface_that_was_chosen() {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    assert_eq!(socket.multicast_if_v4()?, Ipv4Addr::UNSPECIFIED);
    let values = [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED];
    round_trip(
        |address| socket.set_multicast_if_v4(&address),
        || socket.multicast_if_v4(),
        &values,
    )?;
    let nowhere = Ipv4Addr::new(203, 0, 113, 1);
    let error = socket.set_multicast_if_v4(&nowhere).expect_err("no such");
    assert_eq!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL));
    let Ok(socket) = UdpSocket::bind("[::1]:0") else {
        skipped("there is no IPv6 here");
        return Ok(());
    };
    assert_eq!(socket.multicast_if_v6()?, 0);
    // The first interface of every network namespace.
    let loopback = 1;
    round_trip(
        |index| socket.set_multicast_if_v6(index),
        || socket.multicast_if_v6(),
        &[loopback, 0],
    )
}

const HOUR: Duration = Duration::from_secs(3600);

#[run_test]
async fn the_user_timeout_is_rounded_up_to_milliseconds() {
    let (stream, _peer) = pair().await?;
    assert_eq!(stream.user_timeout()?, None);
    let millis = |millis| Some(Duration::from_millis(millis));
    let values = [millis(1), millis(i32::MAX as u64), None, millis(30_000)];
    round_trip(
        |time| stream.set_user_timeout(time),
        || stream.user_timeout(),
        &values,
    )?;
    stream.set_user_timeout(Some(Duration::from_nanos(1)))?;
    assert_eq!(stream.user_timeout()?, millis(1));
    for wrong in [Duration::ZERO, 600 * HOUR, Duration::MAX] {
        let error = stream.set_user_timeout(Some(wrong)).expect_err("no such");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
        assert_eq!(stream.user_timeout()?, millis(1));
    }
}

/// The peer acknowledges all that arrives, but its receive buffer is full: bytes that the kernel
/// cannot send count, too.
#[run_test]
async fn a_peer_that_takes_nothing_ends_the_connection_after_the_user_timeout() {
    const TIMEOUT: Duration = Duration::from_millis(100);
    let (mut stream, peer) = pair_with_std().await?;
    stream.set_user_timeout(Some(TIMEOUT))?;
    let begin = std::time::Instant::now();
    let error = loop {
        if let Err(error) = stream.write(&[0; 1 << 16]).await {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT), "the kernel's");
    assert!(begin.elapsed() >= TIMEOUT);
    drop(peer);
}

#[run_test]
async fn busy_polling_is_set_in_microseconds() {
    let (stream, _peer) = pair().await?;
    let default = stream.busy_poll()?;
    let times = [Duration::ZERO, default.min(Duration::from_micros(1))];
    round_trip(
        |time| stream.set_busy_poll(time),
        || stream.busy_poll(),
        &times,
    )?;
    let error = stream.set_busy_poll(HOUR).expect_err("too long");
    assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
    let udp = UdpSocket::bind("127.0.0.1:0")?;
    match udp.set_busy_poll(Duration::from_nanos(49_001)) {
        Ok(()) => assert_eq!(udp.busy_poll()?, Duration::from_micros(50)),
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
    }
    Ok(())
}

#[run_test]
async fn a_deferred_accept_waits_for_the_client_to_speak() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    assert_eq!(listener.defer_accept()?, None);
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    for (set, rounded) in [(1, 1), (2, 3), (30, 31)] {
        listener.set_defer_accept(seconds(set))?;
        assert_eq!(listener.defer_accept()?, seconds(rounded));
    }
    for wrong in [Duration::ZERO, Duration::MAX] {
        let error = listener.set_defer_accept(Some(wrong)).expect_err("no such");
        assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
        assert_eq!(listener.defer_accept()?, seconds(31));
    }
    let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
    {
        let mut accept = std::pin::pin!(listener.accept());
        for _ in 0..20 {
            assert!(
                poll_once(&mut accept).await.is_none(),
                "it has said nothing"
            );
            sleep(Duration::from_millis(1)).await;
        }
        client.write_all(b"hello")?;
        let mut server = accept.await?;
        let mut said = [0; 5];
        server.read_exact(&mut said).await?;
        assert_eq!(&said, b"hello");
    }
    listener.set_defer_accept(None)?;
    assert_eq!(listener.defer_accept()?, None);
    let _silent = std::net::TcpStream::connect(listener.local_addr()?)?;
    listener.accept().await?;
}

#[run_test]
async fn fast_open_has_a_bound_and_can_be_turned_off() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    assert_eq!(listener.fastopen()?, 0);
    let values = [1, 16, 0];
    round_trip(
        |pending| listener.set_fastopen(pending),
        || listener.fastopen(),
        &values,
    )?;
    // Cut to what the system allows.
    listener.set_fastopen(u32::MAX)?;
    let most = listener.fastopen()?;
    assert!(most > 0, "not taken for a negative number");
    let _client = TcpStream::connect(listener.local_addr()?).await?;
    listener.accept().await?;
}
