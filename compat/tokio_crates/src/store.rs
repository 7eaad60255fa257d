//! Redis, and a cache.

use std::time::Duration;

use glommio::net::TcpStream;
use glommio::{spawn_local, timer};
use glommio_hyper::GlommioIo;
use glommio_tokio::with_tokio;
use hyper_util::rt::TokioIo;
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, Client, RedisConnectionInfo};

use crate::Result;

async fn count(mut connection: MultiplexedConnection, key: &str) -> Result<String> {
    let _: () = connection.del(key).await?;
    let mut count = 0_u64;
    for _ in 0..1000 {
        count = connection.incr(key, 1).await?;
    }
    let _: () = connection.del(key).await?;
    Ok(format!("counted to {count}"))
}

pub async fn redis(port: &str) -> Result<String> {
    let client = Client::open(format!("redis://127.0.0.1:{port}/"))?;
    with_tokio(async move {
        let connection = client.get_multiplexed_async_connection().await?;
        count(connection, "with_tokio").await
    })
    .await
}

/// On a socket of ours, without a tokio runtime, and so without the timeouts of the crate.
pub async fn redis_native(port: &str) -> Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port.parse::<u16>()?)).await?;
    stream.set_nodelay(true)?;
    // `Send`, as the crate wants it, and panics on another thread.
    let stream = TokioIo::new(GlommioIo::new(stream).upgradable());
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let info = RedisConnectionInfo::default();
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&info, stream, config).await?;
    spawn_local(driver).detach();
    count(connection, "native").await
}

/// The same key is asked for a hundred times, and computed once.
pub async fn moka() -> Result<String> {
    let cache = moka::future::Cache::<u32, u32>::new(100);
    let computed = std::rc::Rc::new(std::cell::Cell::new(0));
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let (cache, computed) = (cache.clone(), computed.clone());
            spawn_local(async move {
                let init = async {
                    timer::sleep(Duration::from_millis(2)).await;
                    computed.set(computed.get() + 1);
                    7
                };
                cache.get_with(1, init).await
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await, 7);
    }
    Ok(format!("computed {} time", computed.get()))
}
