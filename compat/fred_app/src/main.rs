//! fred on one executor: sets, gets and counts in a Redis server.
//!
//! fred 10.1 takes its time limits from tokio's clock, with its feature `glommio` too. So a tokio
//! runtime runs beside the executor, for its timers alone.

use std::error::Error;

use fred::prelude::*;
use glommio::{LocalExecutorBuilder, Placement};

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .ok_or("usage: fred_app PORT")?
        .parse()?;
    let clock = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()?;
    let handle = clock.handle().clone();
    LocalExecutorBuilder::new(Placement::Unbound)
        .name("fred")
        .spawn(move || async move {
            let _clock = handle.enter(); // for all tasks of this thread
            let server = ServerConfig::new_centralized("127.0.0.1", port);
            let config = Config {
                server,
                ..Config::default()
            };
            let client = Builder::from_config(config).build()?;
            client.init().await?;
            let _: () = client
                .set("greeting", "hello from fred", None, None, false)
                .await?;
            let greeting: String = client.get("greeting").await?;
            let mut count = 0;
            for _ in 0..1000 {
                count = client.incr("count").await?;
            }
            let _: u64 = client.del(vec!["greeting", "count"]).await?;
            client.quit().await?;
            assert_eq!((&*greeting, count), ("hello from fred", 1000_u64));
            println!("{greeting}, {count} times");
            Ok::<_, fred::error::Error>(())
        })?
        .join()??;
    Ok(())
}
