//! What the server answers: a router of axum, with a limit of tower's.
//!
//! axum wants handlers, their futures and their state to be `Send`, for runtimes that move tasks.
//! Each executor has an app of its own all the same, so that what its handlers share is shared with
//! no other thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use tower::limit::GlobalConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::load_shed::error::Overloaded;
use tower::{BoxError, ServiceBuilder};

/// An app of `max_requests` at a time, which refuses more with status 503. Its handlers wait by
/// `sleep`.
pub fn app<F>(max_requests: usize, sleep: fn(Duration) -> F) -> Router
where
    F: Future<Output = ()> + Send + 'static,
{
    let slow = move |Path(millis): Path<u64>| async move {
        sleep(Duration::from_millis(millis)).await;
        format!("waited {millis} ms\n")
    };
    // From the outside to the inside. The layers below `HandleErrorLayer` fail, and it makes
    // responses of that.
    let layers = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(refuse))
        .layer(LoadShedLayer::new())
        .layer(GlobalConcurrencyLimitLayer::new(max_requests));
    Router::new()
        .route("/", get(hits))
        .route("/echo", post(|body: Bytes| async { body }))
        .route("/panic", get(panic))
        .route("/slow/{millis}", get(slow))
        .layer(layers)
        .with_state(Arc::default())
}

async fn hits(State(hits): State<Arc<AtomicU64>>) -> String {
    // Of this executor. No other has this counter in its cache.
    let hits = hits.fetch_add(1, Ordering::Relaxed) + 1;
    format!("{hits} hits on this shard\n")
}

async fn panic() -> &'static str {
    panic!("a bug in a handler")
}

async fn refuse(error: BoxError) -> (StatusCode, String) {
    let status = if error.is::<Overloaded>() {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    (status, format!("{error}\n"))
}
