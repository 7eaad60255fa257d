//! quinn and s2n-quic, with the crate h3 on tokio, as peers of the example `http3` of glommio-h3:
//! `quinn serve ADDRESS CERTIFICATE KEY`, `quinn ask ADDRESS AUTHORITY`, and the same with `s2n`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use h3::client::SendRequest;
use h3::quic;
use h3::server::RequestResolver;
use http::{Method, Request, Response, StatusCode};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tachyon_quic::s2n_quic;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{sleep, timeout};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        match arguments[..] {
            ["quinn", "serve", address, certificate, key] => {
                serve_quinn(address, certificate, key).await
            }
            ["quinn", "ask", address, authority] => ask_quinn(address, authority).await,
            ["s2n", "serve", address, certificate, key] => {
                serve_s2n(address, certificate, key).await
            }
            ["s2n", "ask", address, authority] => ask_s2n(address, authority).await,
            _ => Err("quinn|s2n serve ADDRESS CERTIFICATE KEY, or ask ADDRESS AUTHORITY".into()),
        }
    })
}

async fn serve_quinn(address: &str, certificate: &str, key: &str) -> Result {
    let certificates = vec![CertificateDer::from_pem_file(certificate)?];
    let mut tls = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = Arc::new(QuicServerConfig::try_from(tls)?);
    let endpoint =
        quinn::Endpoint::server(quinn::ServerConfig::with_crypto(crypto), address.parse()?)?;
    while let Some(incoming) = endpoint.accept().await {
        spawn_local(async move {
            match incoming.await {
                Ok(connection) => answer_each(h3_quinn::Connection::new(connection)).await,
                Err(error) => eprintln!("quinn: {error}"),
            }
        });
    }
    Ok(())
}

async fn ask_quinn(address: &str, authority: &str) -> Result {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let mut tls = rustls::ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let endpoint = quinn::Endpoint::client("127.0.0.1:0".parse()?)?;
    let connecting = endpoint.connect_with(config, address.parse()?, "localhost")?;
    ask(h3_quinn::Connection::new(connecting.await?)).await?;
    endpoint.wait_idle().await;
    Ok(())
}

async fn serve_s2n(address: &str, certificate: &str, key: &str) -> Result {
    let mut server = s2n_quic::Server::builder()
        .with_tls((Path::new(certificate), Path::new(key)))?
        .with_io(address)?
        .start()?;
    while let Some(connection) = server.accept().await {
        spawn_local(answer_each(tachyon_quic::Connection::new(connection)));
    }
    Ok(())
}

async fn ask_s2n(address: &str, authority: &str) -> Result {
    let mut client = s2n_quic::Client::builder()
        .with_tls(Path::new(authority))?
        .with_io("127.0.0.1:0")?
        .start()?;
    let address: std::net::SocketAddr = address.parse()?;
    let connect = s2n_quic::client::Connect::new(address).with_server_name("localhost");
    ask(tachyon_quic::Connection::new(
        client.connect(connect).await?,
    ))
    .await?;
    client.wait_idle().await?;
    Ok(())
}

/// Answers what the client of a connection asks.
async fn answer_each<C>(connection: C)
where
    C: quic::Connection<Bytes> + 'static,
{
    let requests = async {
        let mut http = h3::server::Connection::<_, Bytes>::new(connection).await?;
        loop {
            match http.accept().await {
                Ok(Some(request)) => drop(spawn_local(async move {
                    if let Err(error) = answer(request).await {
                        eprintln!("a request has failed: {error}");
                    }
                })),
                Ok(None) => return Result::Ok(()),
                Err(error) if error.is_h3_no_error() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    };
    if let Err(error) = requests.await {
        eprintln!("a connection has failed: {error}");
    }
}

async fn answer<C: quic::Connection<Bytes>>(request: RequestResolver<C, Bytes>) -> Result {
    let (request, mut stream) = request.resolve_request().await?;
    let path = request.uri().path();
    if path == "/slow" {
        return std::future::pending().await;
    }
    stream.send_response(Response::new(())).await?;
    if path == "/echo" {
        while let Some(mut data) = stream.recv_data().await? {
            let data = data.copy_to_bytes(data.remaining());
            stream.send_data(data).await?;
        }
    } else {
        let length = path.strip_prefix("/bytes/").ok_or("no such page")?;
        stream.send_data(pattern(length.parse()?).into()).await?;
    }
    Ok(stream.finish().await?)
}

/// Bytes that tell where they are, the same in all implementations.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |index: usize| (index * 31 + index / 251) as u8;
    (0..length).map(byte).collect()
}

const LENGTH: usize = 5_000_000;

async fn ask<C, O>(connection: C) -> Result
where
    C: quic::Connection<Bytes, OpenStreams = O> + 'static,
    O: quic::OpenStreams<Bytes, BidiStream: quic::BidiStream<Bytes>> + Clone + 'static,
{
    let (mut control, requests) = h3::client::new(connection).await?;
    let control = spawn_local(async move { control.wait_idle().await });

    let read = send(&requests, Method::GET, &format!("/bytes/{LENGTH}"), &[]).await?;
    told("5 MB", read == pattern(LENGTH))?;
    let read = send(&requests, Method::POST, "/echo", &pattern(LENGTH)).await?;
    told("5 MB by POST, and back", read == pattern(LENGTH))?;
    let asked = (1000..1200).map(|length| {
        let requests = requests.clone();
        spawn_local(async move {
            let read = send(&requests, Method::GET, &format!("/bytes/{length}"), &[]).await;
            read.is_ok_and(|read| read == pattern(length))
        })
    });
    let mut all_are_right = true;
    for asked in asked.collect::<Vec<_>>() {
        all_are_right &= asked.await?;
    }
    told("200 requests at a time", all_are_right)?;

    let before = cancelled(&requests).await?;
    for _ in 0..10 {
        let slow = Request::get("https://localhost/slow").body(())?;
        let mut stream = requests.clone().send_request(slow).await?;
        stream.finish().await?;
        let late = timeout(Duration::from_millis(20), stream.recv_response()).await;
        told("a response that does not come", late.is_err())?;
        // That stops it. `stop_sending` of h3-quinn panics here, since the read was given up.
        drop(stream);
    }
    let mut tries = 0;
    while cancelled(&requests).await? != before + 10 && tries < 1000 {
        tries += 1;
        sleep(Duration::from_millis(10)).await;
    }
    told("ten cancelled requests", tries < 1000)?;
    drop(requests);
    control.await?;
    Ok(())
}

/// How many requests of all clients were cancelled.
async fn cancelled<O>(requests: &SendRequest<O, Bytes>) -> Result<u64>
where
    O: quic::OpenStreams<Bytes, BidiStream: quic::BidiStream<Bytes>> + Clone,
{
    let text = send(requests, Method::GET, "/cancelled", &[]).await?;
    Ok(String::from_utf8(text)?.parse()?)
}

async fn send<O>(
    requests: &SendRequest<O, Bytes>,
    method: Method,
    path: &str,
    body: &[u8],
) -> Result<Vec<u8>>
where
    O: quic::OpenStreams<Bytes, BidiStream: quic::BidiStream<Bytes>> + Clone,
{
    let request = Request::builder().method(method);
    let request = request.uri(format!("https://localhost{path}")).body(())?;
    let stream = requests.clone().send_request(request).await?;
    let (mut send, mut recv) = stream.split();
    let write = async {
        if !body.is_empty() {
            send.send_data(Bytes::copy_from_slice(body)).await?;
        }
        Result::Ok(send.finish().await?)
    };
    let read = async {
        let status = recv.recv_response().await?.status();
        let mut read = Vec::new();
        while let Some(data) = recv.recv_data().await? {
            read.put(data);
        }
        match status {
            StatusCode::OK => Ok(read),
            status => Err(format!("{path}: {status}").into()),
        }
    };
    let (written, read) = tokio::join!(write, read);
    written?;
    read
}

fn told(what: &str, is_right: bool) -> Result {
    match is_right {
        true => println!("  ok: {what}"),
        false => return Err(format!("wrong: {what}").into()),
    }
    Ok(())
}
