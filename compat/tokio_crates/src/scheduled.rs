//! Jobs and timers of other runtimes.

use std::time::{Duration, Instant};

use glommio_tokio::Tokio;
use tokio_cron_scheduler::{Job, JobScheduler};

use crate::Result;

/// Its jobs are tasks of tokio's, on the background thread.
pub async fn tokio_cron_scheduler() -> Result<String> {
    let tokio = Tokio::start()?;
    let (sender, mut runs) = tokio::sync::mpsc::unbounded_channel();
    tokio
        .with(async {
            let mut scheduler = JobScheduler::new().await?;
            let job = Job::new_async("* * * * * *", move |_, _| {
                let sender = sender.clone();
                Box::pin(async move {
                    let _ = sender.send(());
                })
            })?;
            scheduler.add(job).await?;
            scheduler.start().await?;
            for _ in 0..2 {
                runs.recv().await.ok_or("it has ended")?;
            }
            scheduler.shutdown().await?;
            Ok("2 runs".to_owned())
        })
        .await
}

/// A reactor with a thread of its own.
pub async fn async_io() -> Result<String> {
    let begin = Instant::now();
    async_io::Timer::after(Duration::from_millis(10)).await;
    assert!(begin.elapsed() >= Duration::from_millis(10));
    Ok("10 ms".to_owned())
}
