//! ohkami on one executor: a page, a path with a parameter, and a WebSocket (by mews).

use std::error::Error;
use std::time::Duration;

use glommio::timer::sleep;
use glommio::{LocalExecutorBuilder, Placement};
use ohkami::claw::Path;
use ohkami::ws::{Message, WebSocket, WebSocketContext};
use ohkami::{Ohkami, Route};

async fn hello() -> &'static str {
    "hello from ohkami"
}

async fn greet(Path(name): Path<&str>) -> String {
    // On the timers of the executor.
    sleep(Duration::from_millis(5)).await;
    format!("hello, {name}")
}

async fn echo(context: WebSocketContext<'_>) -> WebSocket {
    context.upgrade(|mut connection| async move {
        while let Ok(Some(Message::Text(text))) = connection.recv().await {
            if connection.send(text).await.is_err() {
                return;
            }
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: ohkami_app ADDRESS")?;
    LocalExecutorBuilder::new(Placement::Unbound)
        .name("ohkami")
        .spawn(move || async move {
            let routes = (
                "/".GET(hello),
                "/greet/:name".GET(greet),
                "/echo".GET(echo),
            );
            Ohkami::new(routes).howl(&*address).await;
        })?
        .join()?;
    println!("ohkami has ended");
    Ok(())
}
