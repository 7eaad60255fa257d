//! The twin of the example `http_server` on tokio: the same hyper and the same answers, on one thread.
//!
//! Like the example it serves on a thread of its own, beside `main`: the C library's allocator and system call
//! wrappers take short cuts in a process of one thread, which a server with a thread per CPU does not have.
//! It has hyper's header timeout as the example does; tokio's sockets have no read and write timeouts, so in
//! that it does less.

#[path = "../../../../examples/src/bin/http_server/service.rs"]
mod service;

use std::error::Error;
use std::thread;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let server = thread::spawn(|| run().map_err(|error| error.to_string()));
    server.join().expect("serving does not panic")?;
    Ok(())
}

fn run() -> Result<(), Box<dyn Error>> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    // Spawned, since the future of `block_on` itself is woken in another way than a task.
    runtime.block_on(async { tokio::task::spawn_local(serve()).await? })
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}/", listener.local_addr()?);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(10));
    loop {
        let (stream, _) = listener.accept().await?;
        let http = http.clone();
        tokio::task::spawn_local(async move {
            stream.set_nodelay(true)?;
            let service = service_fn(|request| service::respond(request, tokio::time::sleep));
            let connection = http.serve_connection(TokioIo::new(stream), service);
            connection.await.map_err(std::io::Error::other)
        });
    }
}
