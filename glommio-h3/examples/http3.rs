//! A server and a client of HTTP/3, which `compat/quic/run` has talk to other implementations.
//!
//! ```console
//! $ cargo run -p glommio-h3 --example http3 -- serve 127.0.0.1:4433 server.pem server.key &
//! $ cargo run -p glommio-h3 --example http3 -- ask 127.0.0.1:4433 authority.pem
//! ```
//!
//! `GET /bytes/N` gives N bytes, `POST /echo` the body, `GET /slow` never anything, and
//! `GET /cancelled` how many of those were cancelled. `serve-retry` has each client prove its address.
//! The server ends in good order by Ctrl-C.

use futures_lite::FutureExt;
use glommio::signal::ctrl_c;
use glommio::timer::timeout;
use glommio::{LocalExecutor, spawn_local};
use glommio_h3::{ALPN, Client, Connections, Incoming};
use glommio_quic::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use glommio_quic::{ClientConfig, Endpoint, VarInt, crypto, rustls};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use std::cell::Cell;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

type BoxError = Box<dyn Error + Send + Sync>;
type Body = UnsyncBoxBody<Bytes, BoxError>;
type Result<T = ()> = std::result::Result<T, BoxError>;

fn main() -> Result {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    LocalExecutor::default().run(async {
        match arguments[..] {
            ["serve", address, certificate, key] => serve(address, certificate, key, false).await,
            ["serve-retry", address, certificate, key] => {
                serve(address, certificate, key, true).await
            }
            ["ask", address, authority] => ask(address.parse()?, authority).await,
            _ => Err("serve|serve-retry ADDRESS CERTIFICATE KEY, or ask ADDRESS AUTHORITY".into()),
        }
    })
}

async fn serve(address: &str, certificate: &str, key: &str, retries: bool) -> Result {
    let certificates = vec![CertificateDer::from_pem_file(certificate)?];
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let config = crypto::with_crypto(tls.try_into()?)?;
    let endpoint = Endpoint::server(config, address.parse()?)?;
    println!("listening on {}", endpoint.local_addr()?);

    let (connections, cancelled) = (Connections::new(), Rc::new(Cell::new(0)));
    let accept = async {
        while let Some(incoming) = endpoint.accept().await {
            if retries && incoming.may_retry() {
                incoming.retry().map_err(|error| error.to_string())?;
                continue;
            }
            let (serving, cancelled) = (connections.clone(), Rc::clone(&cancelled));
            spawn_local(async move {
                let service = service_fn(move |request| answer(request, Rc::clone(&cancelled)));
                let served = match incoming.await {
                    Ok(connection) => serving.serve(connection, service).await,
                    Err(error) => return eprintln!("a handshake has failed: {error}"),
                };
                if let Err(error) = served {
                    eprintln!("a connection has failed: {error}");
                }
            })
            .detach();
        }
        Result::Ok(())
    };
    let ended = async { Ok(ctrl_c().await.map(drop)?) };
    accept.or(ended).await?;
    let closed = connections.shutdown_within(Duration::from_secs(5)).await;
    endpoint.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    println!("ended, {closed} connections by force");
    Ok(())
}

/// Counts when it is dropped.
struct Counts(Rc<Cell<u64>>);

impl Drop for Counts {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

async fn answer(request: Request<Incoming>, cancelled: Rc<Cell<u64>>) -> Result<Response<Body>> {
    let path = request.uri().path().to_owned();
    let response = match (request.method(), path.as_str()) {
        (&Method::POST, "/echo") => {
            Response::new(request.into_body().map_err(Into::into).boxed_unsync())
        }
        (_, "/slow") => {
            let _counts = Counts(cancelled);
            std::future::pending().await
        }
        (_, "/cancelled") => Response::new(full(cancelled.get().to_string())),
        (_, path) => match path.strip_prefix("/bytes/").and_then(|n| n.parse().ok()) {
            Some(length) => Response::new(full(pattern(length))),
            None => {
                let mut response = Response::new(full("no such page\n"));
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        },
    };
    Ok(response)
}

fn full(bytes: impl Into<Bytes>) -> Body {
    let body = Full::new(bytes.into());
    body.map_err(|never| match never {}).boxed_unsync()
}

/// Bytes that tell where they are, the same in all implementations.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |index: usize| (index * 31 + index / 251) as u8;
    (0..length).map(byte).collect()
}

const LENGTH: usize = 5_000_000;
const PARALLEL: usize = 200;

async fn ask(address: SocketAddr, authority: &str) -> Result {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(crypto::provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let config = ClientConfig::new(Arc::new(crypto::QuicClientConfig::try_from(tls)?));
    let quic = Endpoint::client(([127, 0, 0, 1], 0).into())?;
    let client = Client::new(quic.connect_with(config, address, "localhost")?.await?).await?;

    let read = send(
        &client,
        Method::GET,
        &format!("/bytes/{LENGTH}"),
        Vec::new(),
    )
    .await?;
    told("5 MB", read == pattern(LENGTH))?;
    let read = send(&client, Method::POST, "/echo", pattern(LENGTH)).await?;
    told("5 MB by POST, and back", read == pattern(LENGTH))?;
    let asked = (0..PARALLEL).map(|number| {
        let client = client.clone();
        spawn_local(async move {
            let length = 1000 + number;
            let read = send(
                &client,
                Method::GET,
                &format!("/bytes/{length}"),
                Vec::new(),
            )
            .await?;
            Result::Ok(read == pattern(length))
        })
    });
    let mut all_are_right = true;
    for asked in asked.collect::<Vec<_>>() {
        all_are_right &= asked.await?;
    }
    told("200 requests at a time", all_are_right)?;
    for _ in 0..10 {
        let slow = async { Ok(send(&client, Method::GET, "/slow", Vec::new()).await) };
        told(
            "a response that does not come",
            timeout(Duration::from_millis(20), slow).await.is_err(),
        )?;
    }
    let read = send(&client, Method::GET, "/bytes/10", Vec::new()).await?;
    told(
        "a request after ten that were cancelled",
        read == pattern(10),
    )?;
    client.close();
    quic.wait_idle().await;
    Ok(())
}

async fn send(client: &Client, method: Method, path: &str, body: Vec<u8>) -> Result<Vec<u8>> {
    let uri = format!("https://localhost{path}");
    let request = Request::builder().method(method).uri(uri);
    let response = client
        .send(request.body(Full::new(Bytes::from(body)))?)
        .await?;
    if response.status() != StatusCode::OK {
        return Err(format!("{path}: {}", response.status()).into());
    }
    Ok(response.into_body().collect().await?.to_bytes().into())
}

fn told(what: &str, is_right: bool) -> Result {
    match is_right {
        true => println!("  ok: {what}"),
        false => return Err(format!("wrong: {what}").into()),
    }
    Ok(())
}
