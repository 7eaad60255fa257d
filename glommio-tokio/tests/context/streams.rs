//! Streams of one kind where the other is wanted.

use futures_lite::{AsyncReadExt as _, AsyncWriteExt as _};
use glommio::{net, spawn_local};
use glommio_tokio::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use glommio_tokio::with_tokio;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

use crate::run;

/// More than the buffers of a connection take.
const BYTES: usize = 8 << 20;

/// Ours on one side, with tokio's traits; tokio's on the other, with those of `futures-io`.
#[test]
fn both_ways() {
    run(async {
        let listener = net::TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let sent: Vec<u8> = (0..BYTES).map(|it| (it % 251) as u8).collect();
        let expected = sent.clone();
        let server = spawn_local(async move {
            let mut stream = listener.accept().await?.compat();
            let mut received = vec![0; BYTES];
            stream.read_exact(&mut received).await?;
            assert!(received == expected, "the bytes differ");
            AsyncWriteExt::write_all(&mut stream, b"a line\n").await?;
            stream.shutdown().await
        });
        with_tokio(async move {
            let stream = tokio::net::TcpStream::connect(address).await?;
            let mut stream = stream.compat();
            stream.write_all(&sent).await?;
            stream.flush().await?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await?;
            assert_eq!(answer, "a line\n");
            stream.close().await
        })
        .await?;
        server.await?;
        Ok(())
    });
}

/// The tests of tokio's extensions need no context of tokio's.
#[test]
fn without_a_tokio_runtime() {
    run(async {
        let (one, other) = net::UnixStream::pair()?;
        let mut one = one.compat();
        AsyncWriteExt::write_all(&mut one, b"first\nsecond\n").await?;
        drop(one);
        let mut lines = tokio::io::BufReader::new(other.compat()).lines();
        assert_eq!(lines.next_line().await?.as_deref(), Some("first"));
        assert_eq!(lines.next_line().await?.as_deref(), Some("second"));
        assert_eq!(lines.next_line().await?, None);
        Ok(())
    });
}
