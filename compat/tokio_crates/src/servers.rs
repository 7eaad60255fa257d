//! Frameworks with a runtime of their own, each on a thread next to the executor.

use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use glommio::executor;
use glommio::net::TcpStream;
use glommio::spawn_local;
use glommio_hyper::GlommioIo;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::{Request, header};

use crate::Result;

/// Runs `server` on a thread, and asks it once from a task of the executor.
async fn ask(server: fn(&Sender<SocketAddr>) -> Result) -> Result<String> {
    let (address, addresses) = channel();
    // Without an end: the process ends it.
    thread::spawn(move || {
        if let Err(error) = server(&address) {
            eprintln!("the server: {error}");
        }
    });
    let address = executor().spawn_blocking(move || addresses.recv()).await?;
    let stream = TcpStream::connect(address).await?;
    let (mut send, connection) =
        hyper::client::conn::http1::handshake(GlommioIo::new(stream)).await?;
    spawn_local(connection).detach();
    let request = Request::get("/").header(header::HOST, "localhost");
    let response = send
        .send_request(request.body(Empty::<Bytes>::new())?)
        .await?;
    let text = response.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8(text.to_vec())?)
}

pub async fn actix_web() -> Result<String> {
    use actix_web::{App, HttpServer, web};
    ask(|addresses| {
        let app = || App::new().route("/", web::get().to(async || "hello from actix-web"));
        let server = HttpServer::new(app).workers(1).disable_signals();
        let server = server.bind("127.0.0.1:0")?;
        addresses.send(server.addrs()[0])?;
        Ok(actix_web::rt::System::new().block_on(server.run())?)
    })
    .await
}

pub async fn warp() -> Result<String> {
    use warp::Filter;
    ask(|addresses| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            addresses.send(listener.local_addr()?)?;
            let app = warp::path::end().map(|| "hello from warp");
            warp::serve(app).incoming(listener).run().await;
            Ok(())
        })
    })
    .await
}

pub async fn rocket() -> Result<String> {
    use rocket::fairing::AdHoc;
    use rocket::{Config, get, routes};

    #[get("/")]
    fn hello() -> &'static str {
        "hello from rocket"
    }
    ask(|addresses| {
        let config = Config {
            port: 0,
            log_level: rocket::config::LogLevel::Off,
            ..Config::default()
        };
        let addresses = addresses.clone();
        let lifted = AdHoc::on_liftoff("address", move |rocket| {
            let Config { address, port, .. } = *rocket.config();
            // The executor waits for it.
            let _ = addresses.send((address, port).into());
            Box::pin(async {})
        });
        let server = rocket::custom(config).mount("/", routes![hello]);
        rocket::execute(server.attach(lifted).launch())?;
        Ok(())
    })
    .await
}
