//! What only HTTP/1 has.

use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::*;

#[test]
fn requests_are_answered() {
    run(is_served(Version::Http1));
}

#[test]
fn a_body_is_echoed() {
    run(is_echoed(Version::Http1));
}

/// Answered in their order, whatever their length.
#[test]
fn requests_that_come_at_once_are_answered_in_order() {
    run(async {
        let server = Server::start(Version::Http1)?;
        let mut stream = TcpStream::connect(server.address).await?;
        let head = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        let requests = [head("/slow/5"), head("/"), head("/slow/0")].concat();
        stream.write_all(requests.as_bytes()).await?;
        let mut received = Vec::new();
        while server.answered.get() < 3 || !received.ends_with(b"at last") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await?;
            assert!(count > 0, "it is kept alive");
            received.extend(&bytes[..count]);
        }
        let text = String::from_utf8(received)?;
        let places: Vec<_> = ["at last", "hello", "at last"]
            .into_iter()
            .scan(0, |from, answer| {
                let at = *from + text[*from..].find(answer)?;
                *from = at + answer.len();
                Some(at)
            })
            .collect();
        assert_eq!(places.len(), 3, "{text}");
        drop(stream);
        server.stop().await;
        Ok(())
    });
}

/// A stream of bytes that come one by one.
#[test]
fn a_request_may_come_in_pieces() {
    run(async {
        let server = Server::start(Version::Http1)?;
        let mut stream = TcpStream::connect(server.address).await?;
        stream.set_nodelay(true)?;
        let request = b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nabcde";
        for byte in request {
            stream.write_all(&[*byte]).await?;
            glommio::executor().yield_now().await;
        }
        let mut received = Vec::new();
        while !received.ends_with(b"abcde") {
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).await?;
            assert!(count > 0);
            received.extend(&bytes[..count]);
        }
        drop(stream);
        server.stop().await;
        Ok(())
    });
}

/// The socket's own timeout ends a connection whose body does not come.
#[test]
fn timeouts_of_the_socket_apply() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?).await?;
        let stream = listener.accept().await?;
        stream.set_read_timeout(Some(Duration::from_millis(5)))?;
        let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc";
        client.write_all(head).await?;
        let service = service_fn(|request: Request<Incoming>| async move {
            let collected = request.into_body().collect().await;
            Ok::<_, hyper::Error>(Response::new(Full::new(collected?.to_bytes())))
        });
        let http = server::conn::http1::Builder::new();
        let connection = http.serve_connection(GlommioIo::new(stream), service);
        let error = connection.await.expect_err("the body does not come");
        let causes = std::iter::successors(std::error::Error::source(&error), |it| it.source());
        let text: Vec<_> = causes.map(ToString::to_string).collect();
        assert!(
            text.iter().any(|it| it.contains("timed out")),
            "{error}: {text:?}"
        );
        Ok(())
    });
}

/// `get_ref`, `get_mut` and `into_inner` lead to the stream; what hyper did not read comes with it.
#[test]
fn the_stream_comes_back() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let mut io = GlommioIo::new(listener.accept().await?);
        assert_eq!(io.get_ref().peer_addr()?, client.local_addr()?);
        io.get_mut().set_nodelay(true)?;
        assert!(io.into_inner().nodelay()?);
        Ok(())
    });
}
