use futures_lite::io::{copy, split};
use glommio::{GlommioError, LocalExecutor, net::TcpListener, spawn_local, timer::sleep};
use std::time::Duration;

async fn echo(listener: TcpListener, limit: Duration) -> Result<(), GlommioError<()>> {
    loop {
        match listener.accept().await {
            Ok(client) => {
                client.set_read_timeout(Some(limit))?; // disconnects a client that is silent for that long
                let (reader, writer) = split(client);
                spawn_local(copy(reader, writer)).detach(); // a `Task` that is dropped is cancelled
            }
            Err(error) => {
                eprintln!("cannot accept: {error}"); // out of descriptors, most likely
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn main() -> Result<(), GlommioError<()>> {
    LocalExecutor::default().run(async {
        let listener = TcpListener::bind("127.0.0.1:7000")?;
        echo(listener, Duration::from_secs(30)).await
    })
}
