use std::io::Write;
use std::net::{Shutdown, UdpSocket as StdUdpSocket};
use std::os::unix::net::UnixDatagram as StdUnixDatagram;

use glommio::net::{
    BalancedTcpListener, ConnectionLimit, DatagramPool, Pacer, Segments, lookup_host,
};

use super::*;

#[run_test]
async fn names_that_are_addresses() {
    counts!(
        "lookup_host",
        assert_eq!(lookup_host("127.0.0.1:80").await.unwrap().count(), 1)
    );
}

#[run_test]
async fn connecting() {
    let nowhere = &[][..];
    counts!(
        "TcpStream::connect",
        TcpStream::connect(nowhere).await.expect_err("no address")
    );
    counts!(
        "TcpStream::connect_fastopen",
        TcpStream::connect_fastopen(nowhere)
            .await
            .expect_err("no address")
    );
    counts!("TcpStream::connect_timeout", {
        let connected = TcpStream::connect_timeout("127.0.0.1:1", Duration::ZERO).await;
        connected.expect_err("no time");
    });
    counts!(
        "UnixStream::connect",
        UnixStream::connect("a\0b").await.expect_err("no such path")
    );
}

#[run_test]
async fn streams_that_have_nothing_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut stream = listener.accept().await.unwrap();
    let mut empty = [];
    counts!(
        "TcpStream, reading",
        assert_eq!(stream.read(&mut empty).await.unwrap(), 0)
    );
    counts!(
        "TcpStream, writing",
        assert_eq!(stream.write(&[]).await.unwrap(), 0)
    );
    counts!("TcpStream, flushing", stream.flush().await.unwrap());
    peer.write_all(b"peeked").unwrap();
    counts!(
        "TcpStream::peek",
        assert_eq!(stream.peek(&mut [0; 1]).await.unwrap(), 1)
    );
    counts!(
        "TcpStream::recv_tls_record",
        assert_eq!(stream.recv_tls_record(&mut []).await.unwrap().0, 0)
    );
    let file = BufferedFile::open("/proc/self/exe").await.unwrap();
    counts!(
        "TcpStream::send_file",
        assert_eq!(stream.send_file(&file, 0, 0).await.unwrap(), 0)
    );
    counts!(
        "TcpStream::shutdown",
        stream.shutdown(Shutdown::Write).await.unwrap()
    );
    counts!(
        "TcpStream::shutdown, polled",
        poll_fn(|cx| stream.poll_shutdown(cx, Shutdown::Write))
            .await
            .unwrap()
    );
    counts!("TcpStream, closing", stream.close().await.unwrap());
    let mut stream = stream.buffered();
    stream.fill_buf().await.unwrap();
    stream.consume(0);
    counts!("TcpStream, from its buffer", {
        assert_eq!(stream.fill_buf().await.unwrap()[0], b'p');
        stream.consume(0);
    });
}

#[run_test]
async fn unix_streams_that_have_nothing_to_do() {
    let (mut stream, _peer) = UnixStream::pair().unwrap();
    let mut empty = [];
    counts!(
        "UnixStream, reading",
        assert_eq!(stream.read(&mut empty).await.unwrap(), 0)
    );
    counts!(
        "UnixStream, writing",
        assert_eq!(stream.write(&[]).await.unwrap(), 0)
    );
    counts!("UnixStream, flushing", stream.flush().await.unwrap());
    counts!(
        "UnixStream::send_with_fds",
        stream.send_with_fds(&[], &[]).await.expect_err("no byte")
    );
    counts!(
        "UnixStream::recv_with_fds",
        assert_eq!(stream.recv_with_fds(&mut []).await.unwrap().0, 0)
    );
    counts!(
        "UnixStream::shutdown",
        stream.shutdown(Shutdown::Write).await.unwrap()
    );
    counts!("UnixStream, closing", stream.close().await.unwrap());
}

#[run_test]
async fn listeners() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    is_refused("TcpListener::accept", listener.accept()).await;
    is_refused("TcpListener::shared_accept", listener.shared_accept()).await;
    let limit = ConnectionLimit::new(1);
    is_refused("TcpListener::accept_within", listener.accept_within(&limit)).await;
    counts!("ConnectionLimit::place", drop(limit.place().await));
    is_refused("TcpListener::incoming", listener.incoming().next()).await;
    is_refused("TcpListener::into_parts", listener.into_parts()).await;
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    is_refused("UnixListener::accept", listener.accept()).await;
    is_refused("UnixListener::incoming", listener.incoming().next()).await;
    is_refused("UnixListener::into_parts", listener.into_parts()).await;
    let balanced = BalancedTcpListener::bind("127.0.0.1:0").unwrap();
    let mut listener = balanced.join(0).unwrap();
    is_refused("ShardListener::accept", listener.accept()).await;
    is_refused("ShardListener::leave", listener.leave()).await;
}

#[run_test]
async fn datagrams() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (own, address) = (socket.local_addr().unwrap(), peer.local_addr().unwrap());
    counts!(
        "UdpSocket::peek",
        socket.peek(&mut [0; 1]).await.expect_err("it has no peer")
    );
    counts!(
        "UdpSocket::recv",
        socket.recv(&mut [0; 1]).await.expect_err("it has no peer")
    );
    counts!(
        "UdpSocket::send",
        socket.send(&[7]).await.expect_err("it has no peer")
    );
    counts!(
        "UdpSocket::send_to",
        socket.send_to(&[7], &[][..]).await.expect_err("no address")
    );
    counts!("UdpSocket::connect", socket.connect(address).await.unwrap());
    for _ in 0..200 {
        peer.send_to(&[7], own).unwrap();
    }
    counts!(
        "UdpSocket::peek_from",
        socket.peek_from(&mut [0; 1]).await.unwrap()
    );
    counts!(
        "UdpSocket::recv_from",
        socket.recv_from(&mut [0; 1]).await.unwrap()
    );
    let pool = DatagramPool::new(4, 2048);
    let mut received = Vec::new();
    is_refused(
        "UdpSocket::recv_many",
        socket.recv_many(&pool, &mut received),
    )
    .await;
    let segments = || Segments::new(&[7; 10], 0);
    counts!(
        "UdpSocket::send_segments",
        socket
            .send_segments(&segments())
            .await
            .expect_err("of no bytes")
    );
    counts!("UdpSocket::send_segments_at", {
        let sent = socket.send_segments_at(&segments(), past()).await;
        sent.expect_err("of no bytes");
    });
    counts!(
        "UdpSocket::send_many",
        assert_eq!(socket.send_many(&[]).await.unwrap(), 0)
    );
    let mut pacer = Pacer::new(u64::MAX, u64::MAX);
    counts!("Pacer::wait", pacer.wait(1).await);
}

/// Else a task that is sent trains of datagrams would keep the thread for 32 calls of up to 2,048.
#[run_test]
async fn what_one_call_receives_or_sends_counts_by_the_datagram() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let peer = StdUdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..100 {
        peer.send_to(&[7], socket.local_addr().unwrap()).unwrap();
    }
    let pool = DatagramPool::new(100, 2048);
    let mut received = Vec::new();
    begin_spent_slice().await;
    poll_fn(|cx| {
        // One call takes as many as the budget is of, one by one.
        while pin!(socket.recv_many(&pool, &mut received))
            .poll(cx)
            .is_ready()
        {}
        Poll::Ready(())
    })
    .await;
    assert_eq!(received.len(), 32);

    let to = peer.local_addr().unwrap();
    let bytes = [7; 20];
    let one = Segments::new(&bytes[..1], 1).to(to);
    let most = socket.max_segments().min(20);
    let train = Segments::new(&bytes[..most], 1).to(to);
    for (many, datagrams) in [(&[train; 2][..], 2 * most), (&[one; 20], 20)] {
        begin_spent_slice().await;
        poll_fn(|cx| {
            let calls = (0..100)
                .filter(|_| pin!(socket.send_many(many)).poll(cx).is_ready())
                .count();
            assert_eq!(calls, 32_usize.div_ceil(datagrams));
            Poll::Ready(())
        })
        .await;
    }
    begin_spent_slice().await;
    poll_fn(|cx| {
        let sent = (0..100)
            .filter(|_| pin!(socket.send_segments(&train)).poll(cx).is_ready())
            .count();
        assert_eq!(sent, 32_usize.div_ceil(most));
        Poll::Ready(())
    })
    .await;
}

#[run_test]
async fn unix_datagrams() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let peer = StdUnixDatagram::bind(&path).unwrap();
    let socket = UnixDatagram::bind(folder.path().join("own")).unwrap();
    counts!(
        "UnixDatagram::peek",
        socket.peek(&mut [0; 1]).await.expect_err("it has no peer")
    );
    counts!(
        "UnixDatagram::send",
        socket.send(&[7]).await.expect_err("it has no peer")
    );
    counts!(
        "UnixDatagram::send_to",
        socket
            .send_to(&[7], "a\0b")
            .await
            .expect_err("no such path")
    );
    counts!(
        "UnixDatagram::connect",
        socket.connect(&path).await.unwrap()
    );
    is_refused("UnixDatagram::recv", socket.recv(&mut [0; 1])).await;
    drop(peer);
}
