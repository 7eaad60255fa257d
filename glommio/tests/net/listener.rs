//! Binding, options, conversions.

use super::{Result, io_kind, run};
use crate::common::prelude::*;

#[run_test]
async fn the_first_address_is_bound() {
    let addresses = [
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        SocketAddr::from((Ipv4Addr::new(192, 0, 2, 77), 1)),
    ];
    let listener = TcpListener::bind(&addresses[..])?;
    assert_eq!(listener.local_addr()?.ip(), Ipv4Addr::LOCALHOST);
}

/// As for a name that stands for `::1` and `127.0.0.1` where there is no IPv6.
#[run_test]
async fn an_address_that_cannot_be_bound_gives_way_to_the_next() {
    // Of the range for documentation: no interface has it.
    let nowhere = SocketAddr::from((Ipv4Addr::new(192, 0, 2, 77), 0));
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = TcpListener::bind(&[nowhere, here][..])?;
    assert_eq!(listener.local_addr()?.ip(), Ipv4Addr::LOCALHOST);
    let socket = UdpSocket::bind(&[nowhere, here][..])?;
    assert_eq!(socket.local_addr()?.ip(), Ipv4Addr::LOCALHOST);

    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let addresses = [nowhere, taken.local_addr()?];
    let error = TcpListener::bind(&addresses[..]).expect_err("none is free");
    assert_eq!(
        io_kind(&error),
        std::io::ErrorKind::AddrInUse,
        "of the last"
    );
}

#[run_test]
async fn ipv6_works_where_there_is_any() {
    let listener = match TcpListener::bind("[::1]:0") {
        Ok(listener) => listener,
        Err(error) => {
            skipped(format_args!("there is no IPv6 here: {error}"));
            return Ok(());
        }
    };
    let mut client = TcpStream::connect(listener.local_addr()?).await?;
    let mut server = listener.accept().await?;
    assert_eq!(server.peer_addr()?, client.local_addr()?);
    client.write_all(b"six").await?;
    let mut buf = [0; 3];
    server.read_exact(&mut buf).await?;
    assert_eq!(&buf, b"six");
}

/// Blocking or not, from std or as a number: all listeners behave the same.
#[test]
fn listeners_from_elsewhere_accept() {
    for nonblocking in [false, true] {
        run(async move {
            let from_std = std::net::TcpListener::bind("127.0.0.1:0")?;
            from_std.set_nonblocking(nonblocking)?;
            serve_three(TcpListener::from(from_std)).await?;

            let as_number = std::net::TcpListener::bind("127.0.0.1:0")?;
            as_number.set_nonblocking(nonblocking)?;
            // SAFETY: the descriptor has just been given up by its owner.
            serve_three(unsafe { TcpListener::from_raw_fd(as_number.into_raw_fd()) }).await
        });
    }
}

/// Connections that are there before the accept, and such that come while it waits.
async fn serve_three(listener: TcpListener) -> Result {
    let address = listener.local_addr()?;
    let early = std::net::TcpStream::connect(address)?;
    assert_eq!(
        listener.accept().await?.peer_addr()?,
        early.local_addr()?,
        "that was the only one"
    );
    for _ in 0..2 {
        let client = glommio::spawn_local(async move {
            glommio::timer::sleep(std::time::Duration::from_millis(2)).await;
            TcpStream::connect(address).await
        });
        let server = listener.accept().await?;
        assert_eq!(server.peer_addr()?, client.await?.local_addr()?);
    }
    Ok(())
}

#[run_test]
async fn a_listener_goes_back_to_std() {
    let (listener, address) = bound()?;
    assert_eq!(listener.as_fd().as_raw_fd(), listener.as_raw_fd());
    super::abandon(listener.accept()).await;
    // SAFETY: the descriptor has just been given up by its owner.
    let plain = unsafe { std::net::TcpListener::from_raw_fd(listener.into_raw_fd()) };
    let client = std::net::TcpStream::connect(address)?;
    let (server, peer) = plain.accept()?;
    assert_eq!(peer, client.local_addr()?);
    drop(server);
}

#[test]
fn sockets_need_an_executor() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let refused = std::panic::catch_unwind(|| TcpListener::from(listener));
    assert!(refused.is_err(), "no executor runs here");
    let accepted = LocalExecutor::default().run(async {
        let (listener, address) = bound().expect("there is a free port");
        let _client = std::net::TcpStream::connect(address).expect("it listens");
        listener.shared_accept().await.expect("there is a client")
    });
    let refused = std::panic::catch_unwind(|| accepted.bind_to_executor());
    assert!(refused.is_err(), "no executor runs here");
}
