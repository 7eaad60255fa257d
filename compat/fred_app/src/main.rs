//! fred on one executor: sets, gets and counts in a Redis server.

use std::error::Error;

use fred::prelude::*;
use glommio::{LocalExecutorBuilder, Placement};

fn main() -> Result<(), Box<dyn Error>> {
    let port = std::env::args()
        .nth(1)
        .ok_or("usage: fred_app PORT")?
        .parse()?;
    LocalExecutorBuilder::new(Placement::Unbound)
        .name("fred")
        .spawn(move || async move {
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
