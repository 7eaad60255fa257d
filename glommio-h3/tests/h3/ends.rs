//! Requests and connections that end before their time, and servers that finish.

use crate::peer::{AnyBody, BoxError, Result, client, full, request, run, server};
use futures_lite::FutureExt;
use glommio::channels::local_channel;
use glommio::spawn_local;
use glommio::timer::sleep;
use glommio_h3::{Connections, Incoming};
use http_body_util::BodyExt;
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

type Answer = std::result::Result<Response<AnyBody>, BoxError>;

/// Sets a flag when it is dropped.
struct Flags(Rc<Cell<bool>>);

impl Drop for Flags {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn a_request_that_is_cancelled_drops_its_service() -> Result {
    run(async {
        let is_dropped = Rc::new(Cell::new(false));
        let (arrived, arrivals) = local_channel::new_unbounded();
        let arrived = Rc::new(arrived);
        let flag = Rc::clone(&is_dropped);
        let service = service_fn(move |_: Request<Incoming>| {
            let flags = Flags(Rc::clone(&flag));
            arrived.try_send(()).expect("the test listens");
            async move {
                std::future::pending::<()>().await;
                drop(flags);
                Answer::Ok(Response::new(full("")))
            }
        });
        let server = server(&Connections::new(), service)?;
        let client = client(&server).await?;
        let asked = request("GET", "/", "")?;
        let waiting = async { drop(client.send(asked).await) };
        waiting
            .or(async { arrivals.recv().await.unwrap_or(()) })
            .await;
        while !is_dropped.get() {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    })
}

#[test]
fn a_service_that_panics_loses_its_request_only() -> Result {
    run(async {
        let service = service_fn(|request: Request<Incoming>| async move {
            assert!(request.uri().path() != "/panic", "a service that panics");
            Answer::Ok(Response::new(full("well")))
        });
        let connections = Connections::new();
        let server = server(&connections, service)?;
        let client = client(&server).await?;
        assert!(client.send(request("GET", "/panic", "")?).await.is_err());
        let response = client.send(request("GET", "/", "")?).await?;
        assert_eq!(response.into_body().collect().await?.to_bytes(), "well");
        assert_eq!(connections.panics(), 1);
        Ok(())
    })
}

#[test]
fn a_server_that_ends_answers_what_has_come_and_takes_no_more() -> Result {
    run(async {
        let (go, gone) = local_channel::new_unbounded::<()>();
        let (arrived, arrivals) = local_channel::new_unbounded();
        let (gone, arrived) = (Rc::new(gone), Rc::new(arrived));
        let service = service_fn(move |request: Request<Incoming>| {
            let gone = Rc::clone(&gone);
            arrived.try_send(()).expect("the test listens");
            async move {
                if request.uri().path() == "/slow" {
                    gone.recv().await;
                }
                Answer::Ok(Response::new(full(vec![7; 300_000])))
            }
        });
        let connections = Connections::new();
        let server = server(&connections, service)?;
        let (client, idle) = (client(&server).await?, client(&server).await?);
        let response = idle.send(request("GET", "/", "")?).await?;
        assert_eq!(
            response.into_body().collect().await?.to_bytes().len(),
            300_000
        );
        arrivals.recv().await.ok_or("the server is gone")?;

        let slow = client.clone();
        let slow = spawn_local(async move {
            let response = slow.send(request("GET", "/slow", "")?).await?;
            let read = response.into_body().collect().await?.to_bytes();
            Ok::<_, Box<dyn std::error::Error>>(read.len())
        });
        arrivals.recv().await.ok_or("the server is gone")?;
        let ending = connections.clone();
        let ending =
            spawn_local(async move { ending.shutdown_within(Duration::from_secs(60)).await });
        // The one that is idle is closed at once.
        let closed = idle.connection().closed().await.to_string();
        assert!(!closed.contains("timed out"), "{closed}");
        while client.send(request("GET", "/late", "")?).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
        go.try_send(()).expect("the service waits");
        assert_eq!(slow.await?, 300_000);
        assert_eq!(ending.await, 0, "none was closed by force");
        assert_eq!(connections.open(), 0);
        Ok(())
    })
}

#[test]
fn a_response_is_read_to_its_end_after_the_client_is_dropped() -> Result {
    run(async {
        let service = service_fn(|_: Request<Incoming>| async {
            Answer::Ok(Response::new(full(vec![7; 5_000_000])))
        });
        let connections = Connections::new();
        let server = server(&connections, service)?;
        let client = client(&server).await?;
        let response = client.send(request("GET", "/", "")?).await?;
        drop(client);
        let read = response.into_body().collect().await?.to_bytes();
        assert_eq!(read.len(), 5_000_000);
        while connections.open() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    })
}

#[test]
fn the_body_of_a_request_is_sent_to_its_end_after_the_client_is_dropped() -> Result {
    run(async {
        let (received, lengths) = local_channel::new_unbounded();
        let received = Rc::new(received);
        let service = service_fn(move |request: Request<Incoming>| {
            let received = Rc::clone(&received);
            spawn_local(async move {
                let body = request.into_body().collect().await;
                let length = body.map(|body| body.to_bytes().len());
                received.try_send(length.ok()).expect("the test listens");
            })
            .detach();
            async { Answer::Ok(Response::new(full("at once"))) }
        });
        let server = server(&Connections::new(), service)?;
        let client = client(&server).await?;
        let body = vec![7; 5_000_000];
        let response = client.send(request("POST", "/", body)?).await?;
        response.into_body().collect().await?;
        drop(client);
        assert_eq!(lengths.recv().await, Some(Some(5_000_000)));
        Ok(())
    })
}

#[test]
fn a_request_that_never_ends_is_closed_when_the_time_is_over() -> Result {
    run(async {
        let (arrived, arrivals) = local_channel::new_unbounded();
        let arrived = Rc::new(arrived);
        let service = service_fn(move |_: Request<Incoming>| {
            arrived.try_send(()).expect("the test listens");
            async {
                std::future::pending::<()>().await;
                Answer::Ok(Response::new(full("")))
            }
        });
        let connections = Connections::new();
        let server = server(&connections, service)?;
        let client = client(&server).await?;
        let sent = client.clone();
        let request = spawn_local(async move {
            let request = request("GET", "/", "").expect("it is one");
            sent.send(request).await.is_err()
        });
        arrivals.recv().await.ok_or("the server is gone")?;
        assert_eq!(
            connections.shutdown_within(Duration::from_millis(50)).await,
            1
        );
        assert!(request.await, "the client hears of it");
        Ok(())
    })
}

#[test]
fn a_client_that_vanishes_is_given_up() -> Result {
    run(async {
        let connections = Connections::new();
        let service = service_fn(|_: Request<Incoming>| async {
            Answer::Ok(Response::new(full(vec![7; 10_000_000])))
        });
        let server = server(&connections, service)?;
        let address = server.local_addr()?;
        let client = std::thread::spawn(move || {
            let asked = run(async move {
                let client = crate::peer::client_of(address).await?;
                // It reads no body, and leaves without a word.
                let response = client.send(request("GET", "/", "")?).await?;
                std::mem::forget((response, client));
                Ok(())
            });
            asked.map_err(|error| error.to_string())
        });
        while connections.open() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        while connections.open() > 0 {
            sleep(Duration::from_millis(10)).await;
        }
        glommio::executor()
            .spawn_blocking(move || client.join())
            .await
            .expect("it has not panicked")?;
        Ok(())
    })
}
