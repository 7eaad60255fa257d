//! PostgreSQL and SQLite, and pools of connections.

use std::error::Error;

use futures_util::future::try_join_all;
use glommio::net::TcpStream;
use glommio::spawn_local;
use glommio_tokio::compat::FuturesAsyncReadCompatExt;
use glommio_tokio::{Tokio, with_tokio};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use tokio_postgres::{Client, Config, NoTls};

use crate::Result;

pub async fn sqlx_postgres(url: &str) -> Result<String> {
    let tokio = Tokio::start()?;
    let pool = tokio
        .with(PgPoolOptions::new().max_connections(4).connect(url))
        .await?;
    let queries = (0..100_i64).map(|number| {
        // Connections go back to the pool by a task that their destructor spawns.
        tokio.with(
            sqlx::query_scalar::<_, i64>("SELECT $1 + 1")
                .bind(number)
                .fetch_one(&pool),
        )
    });
    let sum: i64 = try_join_all(queries).await?.into_iter().sum();
    tokio.with(pool.close()).await;
    Ok(format!("100 queries, sum {sum}"))
}

/// SQLite has a thread for each connection.
pub async fn sqlx_sqlite() -> Result<String> {
    let tokio = Tokio::start()?;
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = tokio.with(pool.connect("sqlite::memory:")).await?;
    tokio.scope(insert(&pool)).await?;
    let failed = delete(&tokio, &pool).await;
    failed.expect_err("there is no such table");
    let sum = sqlx::query_scalar::<_, i64>("SELECT SUM(number) FROM numbers");
    let sum = tokio.with(sum.fetch_one(&pool)).await?;
    tokio.with(pool.close()).await;
    Ok(format!("100 rows, sum {sum}"))
}

async fn insert(pool: &SqlitePool) -> Result {
    sqlx::query("CREATE TABLE numbers (number INTEGER)")
        .execute(pool)
        .await?;
    for number in 1..=100_i64 {
        let insert = sqlx::query("INSERT INTO numbers VALUES (?)").bind(number);
        insert.execute(pool).await?;
    }
    Ok(())
}

/// Fails, and drops its transaction by the early return, outside of the polls in the context: it is
/// rolled back, and its connection goes back to the pool by a task of tokio's.
async fn delete(tokio: &Tokio, pool: &SqlitePool) -> Result {
    let mut transaction = tokio.keep(tokio.with(pool.begin()).await?);
    for delete in ["DELETE FROM numbers", "DELETE FROM nothing"] {
        let delete = sqlx::query(delete).execute(&mut **transaction);
        tokio.with(delete).await?;
    }
    tokio.with(transaction.into_inner().commit()).await?;
    Ok(())
}

/// On a socket of ours, without a tokio runtime.
pub async fn connect(url: &str) -> Result<Client> {
    let config: Config = url.parse()?;
    let (tokio_postgres::config::Host::Tcp(host), port) =
        (&config.get_hosts()[0], config.get_ports()[0])
    else {
        return Err("not a TCP address".into());
    };
    let stream = TcpStream::connect((&**host, port)).await?;
    stream.set_nodelay(true)?;
    let (client, connection) = config.connect_raw(stream.compat(), NoTls).await?;
    spawn_local(connection).detach();
    Ok(client)
}

pub async fn tokio_postgres(url: &str) -> Result<String> {
    let client = connect(url).await?;
    let statement = client.prepare("SELECT $1::BIGINT + 1").await?;
    let queries = (0..100_i64).map(|number| {
        let (client, statement) = (&client, &statement);
        async move {
            let row = client.query_one(statement, &[&number]).await?;
            row.try_get::<_, i64>(0)
        }
    });
    let sum: i64 = try_join_all(queries).await?.into_iter().sum();
    Ok(format!("100 queries, sum {sum}"))
}

/// A pool with tokio's timers and tasks.
pub async fn bb8(url: &str) -> Result<String> {
    struct Manager(String);
    impl bb8::ManageConnection for Manager {
        type Connection = sqlx::PgConnection;
        type Error = sqlx::Error;
        async fn connect(&self) -> std::result::Result<Self::Connection, sqlx::Error> {
            <sqlx::PgConnection as sqlx::Connection>::connect(&self.0).await
        }
        async fn is_valid(
            &self,
            it: &mut Self::Connection,
        ) -> std::result::Result<(), sqlx::Error> {
            sqlx::Connection::ping(it).await
        }
        fn has_broken(&self, _: &mut Self::Connection) -> bool {
            false
        }
    }
    with_tokio(async {
        let pool = bb8::Pool::builder()
            .max_size(2)
            .build(Manager(url.to_owned()))
            .await?;
        let queries = (0..100_i64).map(|number| {
            let pool = &pool;
            async move {
                let mut connection = pool.get().await?;
                let query = sqlx::query_scalar::<_, i64>("SELECT $1 + 1").bind(number);
                let answer = query.fetch_one(&mut *connection).await;
                Ok::<_, Box<dyn Error>>(answer?)
            }
        });
        let sum: i64 = try_join_all(queries).await?.into_iter().sum();
        Ok(format!(
            "100 queries, sum {sum}, {} connections",
            pool.state().connections
        ))
    })
    .await
}

/// A pool for any runtime. Its own connections have to be `Send`, which those of ours are not: it
/// creates them by a task, and holds the clients.
pub async fn deadpool(url: &str) -> Result<String> {
    struct Manager(String);
    impl deadpool::managed::Manager for Manager {
        type Type = Client;
        type Error = String;
        async fn create(&self) -> std::result::Result<Client, String> {
            let url = self.0.clone();
            let connected = send_wrapper::SendWrapper::new(async move { connect(&url).await });
            connected.await.map_err(|error| error.to_string())
        }
        async fn recycle(
            &self,
            client: &mut Client,
            _: &deadpool::managed::Metrics,
        ) -> deadpool::managed::RecycleResult<String> {
            if client.is_closed() {
                return Err(deadpool::managed::RecycleError::message("closed"));
            }
            Ok(())
        }
    }
    let pool = deadpool::managed::Pool::<Manager>::builder(Manager(url.to_owned())).max_size(2);
    let pool = pool.build()?;
    let queries = (0..100_i64).map(|number| {
        let pool = &pool;
        async move {
            let client = pool.get().await.map_err(|error| error.to_string())?;
            let row = client.query_one("SELECT $1::BIGINT + 1", &[&number]).await;
            row.and_then(|it| it.try_get::<_, i64>(0))
                .map_err(|error| error.to_string())
        }
    });
    let sum: i64 = try_join_all(queries).await?.into_iter().sum();
    Ok(format!(
        "100 queries, sum {sum}, {} connections",
        pool.status().size
    ))
}
