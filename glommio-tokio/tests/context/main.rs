//! Futures of tokio inside tasks of executors: where they run, and what becomes of them.

use std::future::Future;
use std::time::Duration;

use glommio::{LocalExecutor, future};

mod drops;
mod executors;
mod fairness;
mod hyper_pool;
mod panics;
mod polls;
mod streams;

type Error = Box<dyn std::error::Error>;
type Result<T = ()> = std::result::Result<T, Error>;

/// What has not happened by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

fn run<T>(test: impl Future<Output = Result<T>>) -> T {
    let in_time = LocalExecutor::default().run(future::timeout(PATIENCE, test));
    let result = in_time.expect("the test does not hang");
    result.expect("the test's operations succeed")
}

/// Created when it is polled: the function of tokio's wants the context already.
async fn sleep_of_tokio(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
