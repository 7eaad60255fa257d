//! Clients of HTTP, and layers of tower-http.

use std::rc::Rc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::future::try_join_all;
use glommio::{executor, timer};
use glommio_hyper::{GlommioExecutor, GlommioTimer};
use glommio_tokio::{Tokio, TokioExecutor};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use send_wrapper::SendWrapper;
use tower_http::timeout::TimeoutLayer;

use crate::{Result, serve};

pub fn app() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", post(|body: Bytes| async { body }))
}

/// The pool of connections has its tasks and its timers on the executor.
pub async fn hyper_util() -> Result<String> {
    let address = serve::http1(app())?;
    let tokio = Tokio::start()?;
    let tasks = TokioExecutor::new(tokio.clone(), GlommioExecutor::new());
    let client = Client::builder(tasks)
        .pool_timer(GlommioTimer)
        .timer(GlommioTimer)
        .build_http::<Empty<Bytes>>();
    let uri = format!("http://{address}/").parse::<hyper::Uri>()?;
    tokio
        .with(async move {
            for _ in 0..100 {
                let response = client.get(uri.clone()).await?;
                assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
            }
            Ok("100 requests".to_owned())
        })
        .await
}

pub async fn reqwest() -> Result<String> {
    let address = serve::http1(app())?;
    let tokio = Tokio::start()?;
    let client = tokio.with(async {
        reqwest::Client::builder()
            .timeout(Duration::from_secs(30))
            .build()
    });
    let client = Rc::new(client.await?);
    let requests = (0..100).map(|number| {
        let client = Rc::clone(&client); // a task of ours is not `Send`
        tokio.with(async move {
            let text = number.to_string();
            let request = client
                .post(format!("http://{address}/echo"))
                .body(text.clone());
            let answer = request.send().await?.error_for_status()?.text().await?;
            assert_eq!(answer, text);
            Ok::<_, reqwest::Error>(())
        })
    });
    let answered = try_join_all(requests).await?;
    Ok(format!("{} requests at a time", answered.len()))
}

/// A client that blocks, on the threads for that.
pub async fn ureq() -> Result<String> {
    let address = serve::http1(app())?;
    let answer = executor().spawn_blocking(move || {
        let mut response = ureq::get(format!("http://{address}/")).call()?;
        response.body_mut().read_to_string()
    });
    Ok(answer.await?)
}

/// Its timeout is tokio's, so the connection is polled in the context.
pub async fn tower_http() -> Result<String> {
    let slow = || SendWrapper::new(timer::sleep(Duration::from_secs(3600)));
    let late =
        TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_millis(20));
    let app = Router::new().route("/", get(slow)).layer(late);
    let tokio = Tokio::start()?;
    let _entered = tokio.handle().enter(); // for all tasks of this thread
    let address = serve::http1(app)?;
    let response = reqwest::get(format!("http://{address}/")).await?;
    Ok(response.status().to_string())
}
