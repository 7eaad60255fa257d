//! Amazon's client of S3, and a server of this program that knows `PUT` and `GET`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aws_sdk_s3::Client;
use aws_sdk_s3::config::{Builder, Credentials, Region, RequestChecksumCalculation};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::put;
use glommio_tokio::with_tokio;

use crate::{Result, serve};

type Objects = Arc<Mutex<HashMap<String, Bytes>>>;

async fn take(State(objects): State<Objects>, Path(key): Path<String>, body: Bytes) {
    objects.lock().expect("it was released").insert(key, body);
}

async fn give(
    State(objects): State<Objects>,
    Path(key): Path<String>,
) -> std::result::Result<Bytes, StatusCode> {
    let objects = objects.lock().expect("it was released");
    objects.get(&key).cloned().ok_or(StatusCode::NOT_FOUND)
}

pub async fn aws_sdk_s3() -> Result<String> {
    let app = Router::new().route("/{*key}", put(take).get(give));
    let address = serve::http1(app.with_state(Objects::default()))?;
    with_tokio(async move {
        let config = Builder::new()
            .behavior_version_latest()
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .endpoint_url(format!("http://{address}"))
            .region(Region::new("compat"))
            .credentials_provider(Credentials::new("key", "secret", None, None, "compat"))
            // Else the body is in chunks of `aws-chunked`, which the server would have to know.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .force_path_style(true)
            .build();
        let client = Client::from_conf(config);
        let object = client.put_object().bucket("bucket").key("a/key");
        let body = Vec::from("an object").into();
        object.body(body).send().await?;
        let object = client.get_object().bucket("bucket").key("a/key");
        let bytes = object.send().await?.body.collect().await?.into_bytes();
        let missing = client.get_object().bucket("bucket").key("another").send();
        assert!(missing.await.is_err_and(|error| {
            error
                .raw_response()
                .is_some_and(|it| it.status().as_u16() == 404)
        }));
        Ok(String::from_utf8(bytes.to_vec())?)
    })
    .await
}
