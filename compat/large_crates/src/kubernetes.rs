//! A client of Kubernetes, and a server of this program that has a list of pods.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use glommio_tokio::with_tokio;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, Config, ResourceExt};

use crate::{Result, serve};

const PODS: &str = r#"{
    "apiVersion": "v1", "kind": "PodList", "metadata": {},
    "items": [{"metadata": {"name": "one"}}, {"metadata": {"name": "two"}}]
}"#;

pub async fn kube() -> Result<String> {
    let pods = get(|| async { ([(header::CONTENT_TYPE, "application/json")], PODS) });
    let app = Router::new().route("/api/v1/namespaces/default/pods", pods);
    let address = serve::http1(app)?;
    with_tokio(async move {
        // Its buffer has a task, so it is made in the context.
        let client = Client::try_from(Config::new(format!("http://{address}").parse()?))?;
        let pods = Api::<Pod>::namespaced(client, "default");
        let pods = pods.list(&ListParams::default()).await?;
        let names: Vec<_> = pods.iter().map(|pod| pod.name_any()).collect();
        Ok(format!("pods {}", names.join(", ")))
    })
    .await
}
