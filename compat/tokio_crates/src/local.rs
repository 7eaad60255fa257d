//! Files, processes, signals and telemetry.

use std::io;
use std::sync::{Arc, Mutex};

use glommio_tokio::with_tokio;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::signal::unix::{SignalKind, signal};
use tracing::Instrument;

use crate::Result;

pub async fn tokio_fs() -> Result<String> {
    let path = std::env::temp_dir().join(format!("tokio_crates-{}", std::process::id()));
    with_tokio(async move {
        tokio::fs::write(&path, "a file").await?;
        let text = tokio::fs::read_to_string(&path).await?;
        tokio::fs::remove_file(&path).await?;
        Ok(text)
    })
    .await
}

pub async fn tokio_process() -> Result<String> {
    with_tokio(async {
        let output = tokio::process::Command::new("echo")
            .arg("a child")
            .output()
            .await?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    })
    .await
}

pub async fn tokio_signal() -> Result<String> {
    with_tokio(async {
        let mut signals = signal(SignalKind::user_defined1())?;
        let id = std::process::id().to_string();
        let sent = tokio::process::Command::new("kill")
            .args(["-USR1", &id])
            .status();
        assert!(sent.await?.success());
        signals.recv().await.ok_or("it has ended")?;
        Ok("received".to_owned())
    })
    .await
}

/// Spans follow their future.
pub async fn tracing() -> Result<String> {
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("it was released").write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .without_time()
        .with_ansi(false)
        .with_target(false)
        .with_writer(move || writer.clone())
        .finish();
    let _default = tracing::subscriber::set_default(subscriber);
    let work = async {
        glommio::executor().yield_task_queue_now().await;
        tracing::info!("done");
    };
    work.instrument(tracing::info_span!("work", number = 7))
        .await;
    let text = lines.0.lock().expect("it was released").clone();
    Ok(String::from_utf8(text)?.trim().to_owned())
}

pub async fn metrics() -> Result<String> {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    metrics::with_local_recorder(&recorder, || {
        metrics::counter!("requests_total").increment(3);
    });
    let text = handle.render();
    let line = text.lines().find(|it| it.starts_with("requests_total"));
    Ok(line.ok_or("it is not there")?.to_owned())
}
