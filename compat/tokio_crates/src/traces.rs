//! Spans of OpenTelemetry, to a collector of this program.

use std::sync::{Arc, Mutex};

use glommio::executor;
use glommio_tokio::Tokio;
use opentelemetry::trace::{Tracer, TracerProvider};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::{Result, serve};

/// The names of the spans.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<String>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> std::result::Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        let names = scopes.flat_map(|scope| scope.spans).map(|span| span.name);
        self.0.lock().expect("it was released").extend(names);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// The exporter is made in the context. Batches leave by a thread of the SDK.
pub async fn opentelemetry_otlp() -> Result<String> {
    let collector = Collector::default();
    let service = TraceServiceServer::new(collector.clone());
    let address = serve::http2(Routes::new(service).into_axum_router())?;
    let tokio = Tokio::start()?;
    let exporter = tokio.with(async {
        let exporter = SpanExporter::builder().with_tonic();
        exporter.with_endpoint(format!("http://{address}")).build()
    });
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter.await?)
        .build();
    let tracer = provider.tracer("compat");
    for number in 0..100 {
        tracer.in_span(format!("span {number}"), |_| ());
    }
    // It blocks until all have left, and the collector is on this thread.
    let shutdown = executor().spawn_blocking(move || provider.shutdown());
    shutdown.await?;
    let names = collector.0.lock().expect("it was released");
    assert!((0..100).all(|number| names.contains(&format!("span {number}"))));
    Ok(format!("{} spans", names.len()))
}
