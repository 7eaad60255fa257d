//! The client of tonic: with its own transport, and on our sockets.

use std::net::SocketAddr;
use std::time::Duration;

use crate::greeting::greeter_client::GreeterClient;
use crate::greeting::greeter_server::GreeterServer;
use crate::greeting::{CountRequest, GreetRequest};
use glommio::net::TcpStream;
use glommio::timer;
use glommio_hyper::{GlommioExecutor, GlommioIo};
use glommio_tokio::with_tokio;
use hyper::Uri;
use send_wrapper::SendWrapper;
use tonic::service::Routes;
use tonic::transport::{Channel, Endpoint};

use crate::{Result, serve, service};

fn serve() -> Result<SocketAddr> {
    let sleep = |duration: Duration| SendWrapper::new(timer::sleep(duration));
    let greeter = GreeterServer::new(service::Service(sleep));
    serve::http2(Routes::new(greeter).into_axum_router())
}

async fn talk(channel: Channel) -> Result<String> {
    let mut client = GreeterClient::new(channel);
    let request = GreetRequest {
        name: "tonic".to_owned(),
        pause_millis: 1,
    };
    let reply = client.greet(request).await?.into_inner();
    let request = CountRequest {
        count: 100,
        pause_millis: 0,
    };
    let mut numbers = client.count(request).await?.into_inner();
    let mut sum = 0;
    while let Some(reply) = numbers.message().await? {
        sum += reply.number;
    }
    Ok(format!("{}; 1 + .. + 100 = {sum}", reply.text))
}

pub async fn tonic() -> Result<String> {
    let address = serve()?;
    with_tokio(async move {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        let endpoint = endpoint.timeout(Duration::from_secs(30));
        talk(endpoint.connect().await?).await
    })
    .await
}

/// Without a tokio runtime: tonic's channel has its tasks on the executor, and a socket of ours.
pub async fn tonic_native() -> Result<String> {
    let address = serve()?;
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
    let endpoint = endpoint.executor(GlommioExecutor::new());
    let connector = tower::service_fn(move |_: Uri| {
        SendWrapper::new(async move {
            let stream = TcpStream::connect(address).await?;
            Ok::<_, glommio::GlommioError<()>>(GlommioIo::new(stream).upgradable())
        })
    });
    talk(endpoint.connect_with_connector(connector).await?).await
}
