//! Data that goes along with the request for a connection, where both ends take part: in a network
//! of its own, for whether servers do is a setting of the system.

use std::process::Command;

use super::*;
use crate::common::in_network_namespace;

/// Clients and servers.
const BOTH: &str = "3";

/// Runs `body` in a network of its own, in which clients (1) and servers (2) take part as `setting`
/// says.
fn with_fastopen(setting: &str, body: impl FnOnce()) {
    alone(|| begin_with_fastopen(setting, body));
}

fn begin_with_fastopen(setting: &str, body: impl FnOnce()) {
    if Command::new("ip").arg("-V").output().is_err() {
        skipped("there is no `ip` to start a network with");
        return;
    }
    in_network_namespace(|| {
        let up = Command::new("ip")
            .args(["link", "set", "lo", "up"])
            .status();
        assert!(up.is_ok_and(|status| status.success()), "`ip` works");
        fs::write("/proc/sys/net/ipv4/tcp_fastopen", setting).expect("the network is ours");
        body();
    });
}

/// A counter of this network.
fn counted(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/net/netstat").expect("there is a `/proc`");
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let mut words = || lines.next().unwrap_or_default().split(' ');
    let (names, values) = (words(), words());
    let value = names.zip(values).find(|(it, _)| *it == name);
    let (_, value) = value.expect("the kernel counts it");
    value.parse().expect("a number")
}

fn is_not_connected(stream: &TcpStream) -> bool {
    match stream.peer_addr() {
        Err(GlommioError::IoError(error)) => error.raw_os_error() == Some(libc::ENOTCONN),
        _ => false,
    }
}

/// The first connection fetches the cookie; what is first written on the others goes with the
/// request.
#[run_test(with_fastopen(BOTH))]
fn the_first_write_goes_with_the_request() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_fastopen(16)?;
        let address = listener.local_addr()?;
        for round in 0..4 {
            let mut client = TcpStream::connect_fastopen(address).await?;
            assert_eq!(is_not_connected(&client), round > 0, "nothing was sent yet");
            // Read first: it waits, for the server is told nothing before the write.
            let mut answer = [0; 5];
            if round > 1 {
                assert!(poll_once(client.read(&mut answer)).await.is_none());
            }
            client.write_all(b"hello").await?;
            let mut server = listener.accept().await?;
            let mut asked = [0; 5];
            server.read_exact(&mut asked).await?;
            assert_eq!(&asked, b"hello");
            server.write_all(b"world").await?;
            client.read_exact(&mut answer).await?;
            assert_eq!(&answer, b"world");
            assert_eq!(client.peer_addr()?, address);
            assert_eq!(counted("TCPFastOpenActive"), round);
            assert_eq!(counted("TCPFastOpenPassive"), round);
        }
        // The usual way does not make use of the cookie.
        let client = TcpStream::connect(address).await?;
        assert_eq!(client.peer_addr()?, address);
        listener.accept().await?;
        Ok(())
    });
}

/// What `connect` would have said, the first read or write does.
#[run_test(with_fastopen(BOTH))]
fn a_refusal_comes_with_the_first_read_or_write() {
    run(async {
        let closed = deaf::closed_port();
        // Without a cookie, as ever.
        let refused = TcpStream::connect_fastopen(closed).await;
        let error = refused.map(drop).expect_err("no socket listens there");
        assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_fastopen(1)?;
        drop(TcpStream::connect_fastopen(listener.local_addr()?).await?);
        listener.accept().await?;
        // The kernel keeps the cookie by host.
        let mut client = TcpStream::connect_fastopen(closed).await?;
        let error = async {
            client.write_all(b"hello").await?;
            client.read(&mut [0; 1]).await
        };
        let error = error.await.expect_err("no socket listens there");
        assert_eq!(error.raw_os_error(), Some(libc::ECONNREFUSED));
        Ok(())
    });
}

/// A connection that is given up before anything was written was none.
#[run_test(with_fastopen(BOTH))]
fn one_that_is_dropped_unwritten_leaves_nothing() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_fastopen(16)?;
        let address = listener.local_addr()?;
        drop(TcpStream::connect_fastopen(address).await?);
        listener.accept().await?;
        let before = open_descriptors();
        for _ in 0..100 {
            let mut client = TcpStream::connect_fastopen(address).await?;
            assert!(is_not_connected(&client));
            assert!(poll_once(client.read(&mut [0; 1])).await.is_none());
        }
        back_to(before).await;
        let nothing = timeout(Duration::from_millis(20), listener.accept()).await;
        assert!(matches!(nothing, Err(GlommioError::TimedOut(_))));
        Ok(())
    });
}

/// The system decides; a program need not know.
#[run_test(with_fastopen("2"))]
fn where_clients_may_not_it_connects_as_ever() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_fastopen(16)?;
        for _ in 0..2 {
            let client = TcpStream::connect_fastopen(listener.local_addr()?).await?;
            assert_eq!(client.peer_addr()?, listener.local_addr()?);
            listener.accept().await?;
        }
        assert_eq!(counted("TCPFastOpenActive"), 0);
        Ok(())
    });
}
