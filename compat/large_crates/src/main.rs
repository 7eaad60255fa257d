//! Crates made for tokio that take long to build, in tasks of an executor: each case runs one, and
//! prints what it did.
//!
//! ```console
//! $ large_crates kube
//! ```

mod kafka;
mod kubernetes;
mod s3;
mod scylla;
#[path = "../../tokio_crates/src/serve.rs"]
#[allow(dead_code, reason = "HTTP/2 is for the other cases")]
mod serve;

use std::error::Error;
use std::time::Duration;

use glommio::{LocalExecutorBuilder, Placement, future};

/// What has not happened by then never will.
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result {
    let case = std::env::args().nth(1).unwrap_or_default();
    let executor = LocalExecutorBuilder::new(Placement::Unbound).make()?;
    let done = executor.run(future::timeout(PATIENCE, async {
        match &*case {
            "aws-sdk-s3" => s3::aws_sdk_s3().await,
            "kube" => kubernetes::kube().await,
            "rdkafka" => kafka::rdkafka().await,
            "rskafka" => kafka::rskafka().await,
            "scylla" => scylla::scylla().await,
            _ => Err(format!("there is no case `{case}`").into()),
        }
    }));
    println!("{}", done??);
    Ok(())
}
