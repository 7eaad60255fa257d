//! In simulations: a bad network, and servers that lose their power.

use crate::peer::{AnyBody, BoxError, Result, client_of, pattern, request, server_at};
use glommio::future::timeout;
use glommio::simulation::Simulation;
use glommio::timer::sleep;
use glommio_h3::{Connections, Incoming};
use http_body_util::BodyExt;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// The first node.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 443);

async fn echo(request: Request<Incoming>) -> std::result::Result<Response<AnyBody>, BoxError> {
    Ok(Response::new(
        request.into_body().map_err(Into::into).boxed_unsync(),
    ))
}

async fn serve() -> Result {
    let _endpoint = server_at(&Connections::new(), service_fn(echo), SERVER)?;
    pending().await
}

/// Requests over one connection, and over another one when that is lost.
async fn ask() -> Result {
    let mut kept = None;
    for number in 0..30 {
        let sent = pattern(number, 10_000);
        loop {
            let attempt = async {
                let client = match kept.take() {
                    Some(client) => client,
                    None => client_of(SERVER).await?,
                };
                let response = client.send(request("POST", "/", sent.clone())?).await?;
                assert_eq!(response.status(), StatusCode::OK);
                let read = response.into_body().collect().await?.to_bytes();
                assert!(read == sent, "request {number}");
                Result::Ok(client)
            };
            if let Ok(Ok(client)) = timeout(2 * SECOND, attempt).await {
                kept = Some(client);
                break;
            }
            sleep(50 * MILLISECOND).await;
        }
        sleep(200 * MILLISECOND).await;
    }
    Ok(())
}

#[test]
fn requests_are_answered_whatever_happens_to_the_server() {
    let mut cuts = 0;
    for seed in 0..3 {
        let report = Simulation::builder()
            .seed(seed)
            .network(|it| it.latency(MILLISECOND..10 * MILLISECOND).loss(0.02))
            .node("server", 1, serve)
            .client("client", ask)
            .restarts("server", 2 * SECOND..6 * SECOND, SECOND / 10..SECOND)
            .time_limit(300 * SECOND)
            .run()
            .expect("all is answered");
        cuts += report.coverage().get("power cut").copied().unwrap_or(0);
    }
    assert!(cuts > 3, "{cuts} power cuts");
}
