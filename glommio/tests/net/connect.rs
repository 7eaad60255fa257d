//! Connecting.

use glommio::net::lookup_host;

use super::deaf::Deaf;
use super::{PATIENCE, closed_port, io_kind, run};
use crate::common::prelude::*;

#[run_test]
async fn a_closed_port_refuses() {
    let error = TcpStream::connect(closed_port())
        .await
        .expect_err("no socket listens");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
    assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
    Ok(())
}

#[run_test]
async fn what_is_no_address_is_an_error_and_no_panic() {
    let nothing: &[SocketAddr] = &[];
    let error = TcpStream::connect(nothing).await.expect_err("no address");
    assert_eq!(io_kind(&error), io::ErrorKind::Other);
    assert!(error.to_string().contains("empty address"), "{error}");
    let unresolvable = TcpStream::connect("no port and no address").await;
    unresolvable.expect_err("that cannot be resolved");

    for error in [
        TcpListener::bind(nothing).expect_err("no address"),
        UdpSocket::bind(nothing).expect_err("no address"),
    ] {
        assert_eq!(io_kind(&error), io::ErrorKind::Other);
        assert!(error.to_string().contains("empty address"), "{error}");
    }
    TcpListener::bind("no address").expect_err("that cannot be resolved");
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let error = socket.send_to(b"x", nothing).await.expect_err("no address");
    assert!(error.to_string().contains("empty address"), "{error}");
    let unresolvable = socket.send_to(b"x", "no address").await;
    unresolvable.expect_err("that cannot be resolved");
}

#[run_test]
async fn a_timeout_that_is_not_needed_does_no_harm() {
    let (listener, address) = bound()?;
    let client = TcpStream::connect_timeout(address, Duration::MAX).await?;
    assert_eq!(client.read_timeout(), None);
    assert_eq!(listener.accept().await?.peer_addr()?, client.local_addr()?);
    let error = TcpStream::connect_timeout(closed_port(), PATIENCE)
        .await
        .expect_err("no socket listens");
    assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
}

#[run_test]
async fn connecting_takes_no_longer_than_allowed() {
    let deaf = Deaf::new();
    let limit = Duration::from_millis(50);
    let started = Instant::now();
    let error = TcpStream::connect_timeout(deaf.address, limit)
        .await
        .expect_err("the peer does not answer");
    assert!(started.elapsed() >= limit);
    assert_eq!(io_kind(&error), io::ErrorKind::TimedOut);
    assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
    Ok(())
}

#[run_test]
async fn no_time_at_all_is_refused_before_anything_else() {
    let error = TcpStream::connect_timeout("no address", Duration::ZERO)
        .await
        .expect_err("zero is no timeout");
    assert_eq!(io_kind(&error), io::ErrorKind::InvalidInput);
    let text = "cannot set a 0 duration timeout";
    assert!(error.to_string().contains(text), "{error}");
    Ok(())
}

#[run_test]
fn many_connects_leave_before_the_poll_that_began_them_ends() {
    const CONNECTS: usize = 40;
    let made = LocalExecutorBuilder::default().ring_depth(8).make();
    made.expect("io_uring is there").run(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        listener.set_nonblocking(true).expect("it is a socket");
        let address = listener.local_addr().expect("it is bound");
        let mut connects: Vec<_> = (0..CONNECTS)
            .map(|_| Box::pin(TcpStream::connect(address)))
            .collect();
        let accepted = poll_fn(|cx| {
            for connect in &mut connects {
                assert!(connect.as_mut().poll(cx).is_pending());
            }
            let (mut accepted, started) = (Vec::new(), Instant::now());
            while accepted.len() < CONNECTS && started.elapsed() < PATIENCE {
                accepted.extend(listener.accept());
            }
            Poll::Ready(accepted.len())
        });
        assert_eq!(accepted.await, CONNECTS);
        for connect in connects {
            connect.await.expect("it was accepted");
        }
    });
}

#[run_test]
async fn host_names_do_not_wait_for_blocking_calls() {
    let listener = TcpListener::bind("localhost:0")?;
    let port = listener.local_addr()?.port();
    let (go_on, told) = mpsc::channel::<()>();
    // The executor has one blocking thread.
    let call = spawn_local(executor().spawn_blocking(move || {
        // Until it is told, or the test has failed.
        let _ = told.recv();
    }));
    TcpStream::connect(("localhost", port)).await?;
    TcpStream::connect_timeout(format!("localhost:{port}"), PATIENCE).await?;
    go_on.send(()).expect("the call waits to be told");
    call.await;
}

#[run_test]
async fn a_host_is_looked_up_to_all_of_its_addresses() {
    let literal: Vec<_> = lookup_host("127.0.0.1:80").await?.collect();
    assert_eq!(literal, [SocketAddr::from(([127, 0, 0, 1], 80))]);
    let several = [
        SocketAddr::from(([127, 0, 0, 1], 1)),
        SocketAddr::from(([127, 0, 0, 2], 2)),
    ];
    assert!(lookup_host(&several[..]).await?.eq(several));
    let expected: Vec<_> = std::net::ToSocketAddrs::to_socket_addrs(&("localhost", 80))?.collect();
    let found: Vec<_> = lookup_host(("localhost", 80)).await?.collect();
    assert_eq!(found, expected);
    assert!(lookup_host("no port and no address").await.is_err());
}
