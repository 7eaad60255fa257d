//! HTTP/3 by `glommio-h3`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::mpsc;

use bytes::Bytes;
use glommio::{LocalExecutor, spawn_local};
use glommio_h3::{Client, Connections};
use glommio_quic::{Endpoint, crypto};
use http_body_util::{BodyExt, Empty, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};

use crate::clock::Clock;
use crate::{Load, Result, settings};

/// How many connections a client has, and requests on each at a time.
pub const CONNECTIONS: usize = 8;
pub const AT_A_TIME: usize = 16;
/// What each response has.
pub static BODY: [u8; 1024] = [b'x'; 1024];

pub fn serve(load: Load, address: &mpsc::Sender<SocketAddr>) -> Result {
    LocalExecutor::default().run(async {
        let config = settings::server(load)?;
        let endpoint = Endpoint::new(
            crypto::endpoint_config()?,
            Some(config),
            settings::socket()?,
        )?;
        address.send(endpoint.local_addr()?)?;
        let connections = Connections::new();
        while let Some(incoming) = endpoint.accept().await {
            let connections = connections.clone();
            spawn_local(async move {
                let service = service_fn(|_| async {
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(&BODY))))
                });
                if let Ok(connection) = incoming.await {
                    drop(connections.serve(connection, service).await);
                }
            })
            .detach();
        }
        Ok(())
    })
}

pub fn run(server: SocketAddr, load: Load) -> Result<[f64; 2]> {
    let Load::Http3(count) = load else {
        return Err("it is of another client".into());
    };
    LocalExecutor::default().run(async {
        let endpoint = Endpoint::new(crypto::endpoint_config()?, None, settings::socket()?)?;
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let connecting = endpoint.connect_with(settings::client(load)?, server, "localhost")?;
            clients.push(Client::new(connecting.await?).await?);
        }
        let clock = Clock::start()?;
        let mut tasks = Vec::new();
        for client in &clients {
            for _ in 0..AT_A_TIME {
                let client = client.clone();
                tasks.push(spawn_local(async move {
                    for _ in 0..count / (CONNECTIONS * AT_A_TIME) {
                        let request =
                            Request::get("https://localhost/").body(Empty::<Bytes>::new())?;
                        let body = client.send(request).await?.into_body().collect().await?;
                        assert_eq!(body.to_bytes().len(), BODY.len());
                    }
                    Result::Ok(())
                }));
            }
        }
        for task in tasks {
            task.await?;
        }
        clock.each(count, 1e6)
    })
}
