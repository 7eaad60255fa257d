//! Requests and their responses.

use crate::peer::{AnyBody, BoxError, Result, client, full, pattern, request, run, server};
use glommio::spawn_local;
use glommio_h3::{Connections, Incoming, alt_svc};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::service::TowerToHyperService;

/// Sends the body back, and its trailers.
async fn echo(request: Request<Incoming>) -> std::result::Result<Response<AnyBody>, BoxError> {
    let path = HeaderValue::from_str(request.uri().path())?;
    let mut response = Response::new(request.into_body().map_err(Into::into).boxed_unsync());
    response.headers_mut().insert("path", path);
    // It has no meaning in HTTP/3, where a message with it is malformed.
    response
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}

#[test]
fn bodies_of_all_lengths_come_back() -> Result {
    run(async {
        let server = server(&Connections::new(), service_fn(echo))?;
        let client = client(&server).await?;
        for length in [0, 1, 100_000, 5_000_000] {
            let sent = pattern(length as u64, length);
            let response = client
                .send(request("POST", "/a/path", sent.clone())?)
                .await?;
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["path"], "/a/path");
            assert!(!response.headers().contains_key(CONNECTION));
            let read = response.into_body().collect().await?.to_bytes();
            assert!(read == sent, "{length} bytes");
        }
        Ok(())
    })
}

#[test]
fn many_requests_at_a_time() -> Result {
    run(async {
        let server = server(&Connections::new(), service_fn(echo))?;
        let client = client(&server).await?;
        let requests: Vec<_> = (0..200)
            .map(|number| {
                let client = client.clone();
                spawn_local(async move {
                    let sent = pattern(number, 3000 + number as usize);
                    let response = client.send(request("PUT", "/", sent.clone())?).await?;
                    let read = response.into_body().collect().await?.to_bytes();
                    assert!(read == sent, "request {number}");
                    Ok::<_, Box<dyn std::error::Error>>(())
                })
            })
            .collect();
        for request in requests {
            request.await?;
        }
        Ok(())
    })
}

#[test]
fn trailers_come_behind_the_body() -> Result {
    run(async {
        let server = server(&Connections::new(), service_fn(echo))?;
        let client = client(&server).await?;
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", HeaderValue::from_static("7"));
        let frames = [
            Frame::data(Bytes::from_static(b"one ")),
            Frame::data(Bytes::from_static(b"two")),
            Frame::trailers(trailers.clone()),
        ];
        let frames = frames.map(Ok::<_, BoxError>);
        let body = StreamBody::new(futures_lite::stream::iter(frames));
        let request = Request::post("https://localhost/").body(body)?;
        let read = client.send(request).await?.into_body().collect().await?;
        assert_eq!(read.trailers(), Some(&trailers));
        assert_eq!(read.to_bytes(), "one two");
        Ok(())
    })
}

#[test]
fn the_response_to_head_has_no_body() -> Result {
    run(async {
        let service = service_fn(|_: Request<Incoming>| async {
            let mut response = Response::new(full("seven b"));
            response
                .headers_mut()
                .insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
            Ok::<_, BoxError>(response)
        });
        let server = server(&Connections::new(), service)?;
        let client = client(&server).await?;
        let response = client.send(request("HEAD", "/", "")?).await?;
        assert_eq!(response.headers()[CONTENT_LENGTH], "7");
        assert_eq!(response.into_body().collect().await?.to_bytes(), "");
        let response = client.send(request("GET", "/", "")?).await?;
        assert_eq!(response.body().size_hint().exact(), Some(7));
        assert_eq!(response.into_body().collect().await?.to_bytes(), "seven b");
        Ok(())
    })
}

#[test]
fn headers_that_are_too_long_are_answered_so() -> Result {
    run(async {
        let connections = Connections::builder().headers_bytes(1000).build();
        let server = server(&connections, service_fn(echo))?;
        let client = client(&server).await?;
        // Its settings have come.
        let response = client.send(request("GET", "/", "")?).await?;
        assert_eq!(response.status(), StatusCode::OK);
        let mut long = request("GET", "/", "")?;
        let value = HeaderValue::from_str(&"x".repeat(2000))?;
        long.headers_mut().insert("long", value);
        assert!(client.send(long).await.is_err());
        let response = client.send(request("GET", "/", "")?).await?;
        assert_eq!(response.status(), StatusCode::OK);
        Ok(())
    })
}

#[test]
fn a_service_of_tower_answers() -> Result {
    run(async {
        let service = TowerToHyperService::new(tower::service_fn(echo));
        let server = server(&Connections::new(), service)?;
        let client = client(&server).await?;
        let response = client.send(request("POST", "/tower", "some")?).await?;
        assert_eq!(response.headers()["path"], "/tower");
        assert_eq!(response.into_body().collect().await?.to_bytes(), "some");
        Ok(())
    })
}

#[test]
fn the_header_that_tells_of_the_server_has_its_port() {
    assert_eq!(alt_svc(4433), "h3=\":4433\"; ma=86400");
}

#[test]
fn a_body_that_fails_is_not_taken_for_all_of_it() -> Result {
    run(async {
        let service = service_fn(|_: Request<Incoming>| async {
            let frames = [
                Ok(Frame::data(Bytes::from_static(b"a part"))),
                Err(BoxError::from("a body that fails")),
            ];
            let body = StreamBody::new(futures_lite::stream::iter(frames));
            Ok::<_, BoxError>(Response::new(body.boxed_unsync()))
        });
        let server = server(&Connections::new(), service)?;
        let client = client(&server).await?;
        let read = match client.send(request("GET", "/", "")?).await {
            Ok(response) => response.into_body().collect().await.map_err(Into::into),
            Err(error) => Err(error),
        };
        assert!(read.is_err(), "{read:?}");
        Ok(())
    })
}
