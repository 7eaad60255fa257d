//! An HTTP client: unmodified hyper, on our sockets.
//!
//! ```console
//! $ cargo run --release -p examples --bin http_client -- http://127.0.0.1:8080/ --include
//! ```
//!
//! `GlommioIo` of the crate `glommio-hyper` is what hyper reads and writes. The
//! connection is a task, and the request waits for its reply, all within one time limit.

#![forbid(unsafe_code)]

use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use clap::Parser;
use futures_lite::future::or;
use glommio::net::TcpStream;
use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement, spawn_local};
use glommio_hyper::GlommioIo;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Request, Uri};

/// Gets a page by HTTP/1.1 and prints it.
#[derive(Clone, Debug, Parser)]
#[command(name = "http_client")]
struct Options {
    /// Such as `http://127.0.0.1:8080/`.
    url: Uri,

    /// Print status and headers as well.
    #[arg(long)]
    include: bool,

    /// How long all of it may take.
    #[arg(long, default_value = "30s")]
    timeout: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("http_client")
        .spawn(move || async move {
            let limit: Duration = *options.timeout;
            let over = async {
                sleep(limit).await;
                Err(format!("nothing that is complete within {limit:?}"))
            };
            // An error of hyper need not be `Send`; its text crosses the threads.
            or(
                async { get(&options).await.map_err(|it| it.to_string()) },
                over,
            )
            .await
        })?;
    Ok(executor.join()??)
}

async fn get(options: &Options) -> Result<(), Box<dyn Error>> {
    let url = &options.url;
    if url.scheme_str() != Some("http") {
        return Err("the URL has to begin with http://".into());
    }
    let authority = url.authority().ok_or("the URL has no host")?;
    let address = format!(
        "{}:{}",
        authority.host(),
        authority.port_u16().unwrap_or(80)
    );
    let stream = TcpStream::connect(&*address).await?;
    stream.set_nodelay(true)?;

    let (mut sender, connection) = http1::handshake(GlommioIo::new(stream)).await?;
    // It reads and writes for the requests, and is cancelled when this function ends.
    let _connection = spawn_local(connection);
    let path = url.path_and_query().map_or("/", |it| it.as_str());
    let request = Request::get(path)
        .header(HOST, authority.as_str())
        .body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;

    let mut output = io::stdout().lock();
    if options.include {
        writeln!(output, "{:?} {}", response.version(), response.status())?;
        for (name, value) in response.headers() {
            writeln!(
                output,
                "{name}: {}",
                String::from_utf8_lossy(value.as_bytes())
            )?;
        }
        writeln!(output)?;
    }
    let status = response.status();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame?.into_data() {
            output.write_all(&bytes)?;
        }
    }
    output.flush()?;
    if status.is_success() {
        Ok(())
    } else {
        Err(format!("the server has answered {status}").into())
    }
}
