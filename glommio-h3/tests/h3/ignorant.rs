//! Clients that do not read what the server says of the connection.

use crate::peer::{AnyBody, BoxError, Result, connect, full, run, server};
use glommio::channels::local_channel;
use glommio::spawn_local;
use glommio_h3::h3::client::{self, SendRequest};
use glommio_h3::h3::error::{Code, StreamError};
use glommio_h3::{Connections, Incoming, Transport};
use glommio_quic::{Connection, ReadError, RecvStream, VarInt};
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::rc::Rc;
use std::time::{Duration, Instant};

type Answer = std::result::Result<Response<AnyBody>, BoxError>;

/// The first is to be kept, and is not polled.
type Http = (
    client::Connection<Transport, Bytes>,
    SendRequest<Transport, Bytes>,
);

async fn http(connection: &Connection) -> Result<Http> {
    let mut http = client::builder();
    Ok(http.build(Transport::new(connection.clone())).await?)
}

fn get(path: &str) -> Result<Request<()>> {
    Ok(Request::get(format!("https://localhost{path}")).body(())?)
}

/// The stream that the first GOAWAY names.
async fn goaway(connection: &Connection) -> Result<u64> {
    // A stream that is dropped is stopped, which some are not to be.
    let mut others = Vec::new();
    loop {
        let mut stream = connection.accept_uni().await?;
        // The control stream is of type 0.
        if varint(&mut stream).await? != 0 {
            others.push(stream);
            continue;
        }
        loop {
            let (kind, length) = (varint(&mut stream).await?, varint(&mut stream).await?);
            if kind == 7 {
                return varint(&mut stream).await;
            }
            stream.read_exact(&mut vec![0; length as usize]).await?;
        }
    }
}

async fn varint(stream: &mut RecvStream) -> Result<u64> {
    let mut first = [0];
    stream.read_exact(&mut first).await?;
    let mut rest = vec![0; (1 << (first[0] >> 6)) - 1];
    stream.read_exact(&mut rest).await?;
    let append = |number, byte: &u8| number << 8 | u64::from(*byte);
    Ok(rest.iter().fold(u64::from(first[0] & 0x3f), append))
}

#[test]
fn goaway_does_not_name_a_request_that_is_under_way_and_late_ones_are_rejected() -> Result {
    run(async {
        let (go, gone) = local_channel::new_unbounded::<()>();
        let (arrived, arrivals) = local_channel::new_unbounded();
        let (gone, arrived) = (Rc::new(gone), Rc::new(arrived));
        let service = service_fn(move |_: Request<Incoming>| {
            let gone = Rc::clone(&gone);
            arrived.try_send(()).expect("the test listens");
            async move {
                gone.recv().await;
                Answer::Ok(Response::new(full("")))
            }
        });
        let connections = Connections::new();
        let server = server(&connections, service)?;
        let connection = connect(server.local_addr()?).await?;
        let (_control, mut requests) = http(&connection).await?;
        let mut request = requests.send_request(get("/")?).await?;
        request.finish().await?;
        arrivals.recv().await.ok_or("the server is gone")?;
        let ending =
            spawn_local(async move { connections.shutdown_within(Duration::from_secs(60)).await });
        assert_eq!(goaway(&connection).await?, request.id().into_inner() + 4);

        for _ in 0..2 {
            let mut late = requests.send_request(get("/late")?).await?;
            let rejected = late.recv_response().await;
            assert!(
                matches!(rejected, Err(StreamError::RemoteTerminate { code, .. })
                    if code == Code::H3_REQUEST_REJECTED),
                "{rejected:?}"
            );
        }
        go.try_send(()).expect("the service waits");
        assert_eq!(request.recv_response().await?.status(), StatusCode::OK);
        assert!(request.recv_data().await?.is_none());
        assert_eq!(ending.await, 0, "none was closed by force");
        Ok(())
    })
}

#[test]
fn headers_that_are_too_long_are_answered_by_status_431() -> Result {
    run(async {
        let connections = Connections::builder().headers_bytes(1000).build();
        let service =
            service_fn(|_: Request<Incoming>| async { Answer::Ok(Response::new(full(""))) });
        let server = server(&connections, service)?;
        let connection = connect(server.local_addr()?).await?;
        let (_control, mut requests) = http(&connection).await?;
        let mut long = get("/")?;
        long.headers_mut().insert("long", "x".repeat(2000).parse()?);
        let mut long = requests.send_request(long).await?;
        long.finish().await?;
        let response = long.recv_response().await?;
        assert_eq!(
            response.status(),
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
        );
        assert!(long.recv_data().await?.is_none(), "it is finished");

        let mut next = requests.send_request(get("/")?).await?;
        next.finish().await?;
        assert_eq!(next.recv_response().await?.status(), StatusCode::OK);
        Ok(())
    })
}

#[test]
fn headers_that_do_not_end_are_reset_after_their_time() -> Result {
    run(async {
        let limit = Duration::from_millis(100);
        let connections = Connections::builder().headers_timeout(limit).build();
        let service =
            service_fn(|_: Request<Incoming>| async { Answer::Ok(Response::new(full(""))) });
        let server = server(&connections, service)?;
        let connection = connect(server.local_addr()?).await?;
        let began = Instant::now();
        let (mut send, mut recv) = connection.open_bi().await?;
        // HEADERS of 63 bytes, of which two come.
        send.write_all(&[1, 63, 0, 0]).await?;
        let cancelled = VarInt::from_u64(Code::H3_REQUEST_CANCELLED.value())?;
        let read = recv.read(&mut [0; 10]).await;
        assert_eq!(read, Err(ReadError::Reset(cancelled)));
        assert!(began.elapsed() >= limit);
        Ok(())
    })
}
