//! Objects of S3, in a server of this program that knows `PUT` and `GET`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::routing::put;
use glommio_tokio::with_tokio;
use hyper::body::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::{ObjectStoreExt, PutPayload};

use crate::{Result, serve};

type Objects = Arc<Mutex<HashMap<String, Bytes>>>;

async fn take(State(objects): State<Objects>, Path(key): Path<String>, body: Bytes) -> HeaderMap {
    objects.lock().expect("it was released").insert(key, body);
    headers()
}

async fn give(
    State(objects): State<Objects>,
    Path(key): Path<String>,
) -> std::result::Result<(HeaderMap, Bytes), StatusCode> {
    let objects = objects.lock().expect("it was released");
    let object = objects.get(&key).cloned().ok_or(StatusCode::NOT_FOUND)?;
    Ok((headers(), object))
}

/// What the client wants to see.
fn headers() -> HeaderMap {
    let modified = HeaderValue::from_static("Wed, 21 Oct 2015 07:28:00 GMT");
    HeaderMap::from_iter([
        (header::ETAG, HeaderValue::from_static("\"1\"")),
        (header::LAST_MODIFIED, modified),
    ])
}

pub async fn object_store() -> Result<String> {
    let app = Router::new()
        .route("/bucket/{*key}", put(take).get(give))
        .with_state(Objects::default());
    let address = serve::http1(app)?;
    with_tokio(async move {
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://{address}"))
            .with_allow_http(true)
            .with_bucket_name("bucket")
            .with_region("here")
            .with_access_key_id("id")
            .with_secret_access_key("secret")
            .build()?;
        let path = object_store::path::Path::from("a/key");
        store
            .put(&path, PutPayload::from_static(b"an object"))
            .await?;
        let object = store.get(&path).await?.bytes().await?;
        let missing = store.get(&"no/key".into()).await;
        assert!(matches!(missing, Err(object_store::Error::NotFound { .. })));
        Ok(String::from_utf8(object.to_vec())?)
    })
    .await
}
