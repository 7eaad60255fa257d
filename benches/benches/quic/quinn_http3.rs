//! HTTP/3 by h3 and h3-quinn, on current-thread runtimes of tokio.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};

use bytes::{Buf, Bytes};
use glommio_quic::crypto;
use h3_quinn::Connection;
use hyper::{Request, Response};
use quinn::{Endpoint, TokioRuntime};
use tokio::runtime::Builder;

use crate::clock::Clock;
use crate::http3::{AT_A_TIME, BODY, CONNECTIONS};
use crate::{Load, Result, settings};

pub fn serve(load: Load, address: &mpsc::Sender<SocketAddr>) -> Result {
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let (config, server) = (crypto::endpoint_config()?, settings::server(load)?);
            let endpoint = Endpoint::new(
                config,
                Some(server),
                settings::socket()?,
                Arc::new(TokioRuntime),
            )?;
            address.send(endpoint.local_addr()?)?;
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    let mut connection: h3::server::Connection<Connection, Bytes> =
                        h3::server::builder()
                            .build(Connection::new(incoming.await?))
                            .await?;
                    while let Some(resolver) = connection.accept().await? {
                        tokio::spawn(async move {
                            let (_, mut stream) = resolver.resolve_request().await?;
                            stream.send_response(Response::new(())).await?;
                            stream.send_data(Bytes::from_static(&BODY)).await?;
                            stream.finish().await?;
                            Result::Ok(())
                        });
                    }
                    Result::Ok(())
                });
            }
            Ok(())
        })
}

pub fn run(server: SocketAddr, load: Load) -> Result<[f64; 2]> {
    let Load::Http3(count) = load else {
        return Err("it is of another client".into());
    };
    Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let config = crypto::endpoint_config()?;
            let endpoint =
                Endpoint::new(config, None, settings::socket()?, Arc::new(TokioRuntime))?;
            let mut clients = Vec::new();
            for _ in 0..CONNECTIONS {
                let connecting =
                    endpoint.connect_with(settings::client(load)?, server, "localhost")?;
                let connection = Connection::new(connecting.await?);
                let (mut control, client) = h3::client::builder()
                    .build::<_, _, Bytes>(connection)
                    .await?;
                tokio::spawn(async move { poll_fn(|cx| control.poll_close(cx)).await });
                clients.push(client);
            }
            let clock = Clock::start()?;
            let mut tasks = Vec::new();
            for client in &clients {
                for _ in 0..AT_A_TIME {
                    let mut client = client.clone();
                    tasks.push(tokio::spawn(async move {
                        for _ in 0..count / (CONNECTIONS * AT_A_TIME) {
                            let request = Request::get("https://localhost/").body(())?;
                            let mut stream = client.send_request(request).await?;
                            stream.finish().await?;
                            stream.recv_response().await?;
                            let mut length = 0;
                            while let Some(data) = stream.recv_data().await? {
                                length += data.remaining();
                            }
                            assert_eq!(length, BODY.len());
                        }
                        Result::Ok(())
                    }));
                }
            }
            for task in tasks {
                task.await??;
            }
            clock.each(count, 1e6)
        })
}
