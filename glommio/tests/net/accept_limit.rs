//! Servers that take no more connections than they have places for.

use std::io::Write;
use std::net::TcpStream as StdStream;
use std::os::unix::net::UnixStream as StdUnixStream;

use futures_lite::pin;
use glommio::net::ConnectionLimit;

use super::{give_up, run};
use crate::common::prelude::*;

const PLACES: usize = 3;
const CLIENTS: usize = 20;

/// Accepting in a loop takes many connections at a time elsewhere.
#[run_test]
async fn clients_beyond_the_limit_are_left_in_the_backlog() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let limit = ConnectionLimit::new(PLACES);
    let address = listener.local_addr()?;
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let mut client = StdStream::connect(address)?;
        client.write_all(&[number as u8])?;
        clients.push(client);
    }
    let mut served = Vec::new();
    for _ in 0..PLACES {
        served.push(listener.accept_within(&limit).await?);
    }
    assert!(give_up(listener.accept_within(&limit)).await);
    assert_eq!(limit.taken(), PLACES);

    // They come in their order, as places come back.
    for number in 0..CLIENTS - PLACES {
        let (mut stream, place) = served.remove(0);
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        assert_eq!(byte, [number as u8]);
        drop((stream, place));
        served.push(listener.accept_within(&limit).await?);
    }
    drop(served);
    assert_eq!(limit.taken(), 0);
}

#[run_test]
async fn none_is_accepted_before_it_has_a_place() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let limit = ConnectionLimit::new(PLACES);
    let address = listener.local_addr()?;
    let clients: Vec<_> = (0..CLIENTS).map(|_| StdStream::connect(address)).collect();
    let mut served = Vec::new();
    for _ in 0..PLACES {
        served.push(listener.accept_within(&limit).await?);
    }
    assert!(give_up(listener.accept_within(&limit)).await);
    let (socket, accepted) = listener.into_parts().await;
    assert_eq!(accepted.len(), 0);
    // All others are in the backlog.
    socket.set_nonblocking(true)?;
    let left = std::iter::from_fn(|| socket.accept().ok()).count();
    assert_eq!(left, CLIENTS - PLACES);
    drop(clients);
}

#[run_test]
async fn an_accept_that_is_given_up_gives_its_place_back() {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let limit = ConnectionLimit::new(1);
    {
        let accept = listener.accept_within(&limit);
        pin!(accept);
        assert!(poll_once(&mut accept).await.is_none());
        let _client = StdStream::connect(listener.local_addr()?)?;
        assert!(poll_once(&mut accept).await.is_none());
    }
    assert_eq!(limit.taken(), 0);
    let (_stream, _place) = listener.accept_within(&limit).await?;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(limit.taken(), 1);
}

/// One that waits for a client takes no place.
#[run_test]
async fn a_listener_without_clients_does_not_starve_another() {
    let (idle, busy) = (
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    );
    let limit = ConnectionLimit::new(1);
    let waits = idle.accept_within(&limit);
    pin!(waits);
    assert!(poll_once(&mut waits).await.is_none());
    assert_eq!(limit.taken(), 0);
    for _ in 0..3 {
        let client = StdStream::connect(busy.local_addr()?)?;
        let (stream, _place) = busy.accept_within(&limit).await?;
        assert_eq!(stream.peer_addr()?, client.local_addr()?);
        assert!(poll_once(&mut waits).await.is_none());
    }
    let client = StdStream::connect(idle.local_addr()?)?;
    assert_eq!(waits.await?.0.peer_addr()?, client.local_addr()?);
}

/// The client that a listener waits to have a place for is accepted by another owner of the socket.
#[run_test]
async fn a_place_for_a_client_that_another_has_accepted_is_given_back() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0")?;
    let shared = TcpListener::from(socket.try_clone()?);
    let own = TcpListener::bind("127.0.0.1:0")?;
    let limit = ConnectionLimit::new(1);
    let place = limit.place().await;
    let _taken = StdStream::connect(socket.local_addr()?)?;
    let waits = shared.accept_within(&limit);
    pin!(waits);
    assert!(give_up(&mut waits).await);
    socket.accept()?;
    drop(place);
    assert!(give_up(&mut waits).await);
    let _client = StdStream::connect(own.local_addr()?)?;
    let (_stream, _place) = own.accept_within(&limit).await?;
    assert_eq!(limit.taken(), 1);
}

#[run_test]
async fn listeners_share_a_limit() {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("socket");
    let unix = UnixListener::bind(&path)?;
    let tcp = TcpListener::bind("127.0.0.1:0")?;
    let limit = ConnectionLimit::new(1);
    let _clients = (
        StdUnixStream::connect(&path)?,
        StdStream::connect(tcp.local_addr()?)?,
    );
    let (stream, place) = unix.accept_within(&limit).await?;
    assert!(give_up(tcp.accept_within(&limit.clone())).await);
    drop((stream, place));
    let _ = tcp.accept_within(&limit).await?;
}
