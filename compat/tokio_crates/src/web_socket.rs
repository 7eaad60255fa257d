//! WebSockets by tokio-tungstenite, on our sockets.

use futures_util::{SinkExt, StreamExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;
use glommio_tokio::compat::FuturesAsyncReadCompatExt;
use tokio_tungstenite::tungstenite::Message;

use crate::Result;

pub async fn tokio_tungstenite() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    spawn_local(async move {
        let stream = listener.accept().await?.compat();
        let mut socket = tokio_tungstenite::accept_async(stream).await?;
        while let Some(message) = socket.next().await {
            socket.send(message?).await?;
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    })
    .detach();
    let stream = TcpStream::connect(address).await?.compat();
    let (mut socket, _) =
        tokio_tungstenite::client_async(format!("ws://{address}/"), stream).await?;
    for number in 0..100 {
        let sent = Message::text(number.to_string());
        socket.send(sent.clone()).await?;
        let echoed = socket.next().await.ok_or("the socket has ended")??;
        assert_eq!(echoed, sent);
    }
    socket.close(None).await?;
    Ok("100 messages".to_owned())
}
