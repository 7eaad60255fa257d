//! Object-relational mappers.

use std::error::Error;

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use futures_util::future::try_join_all;
use glommio::executor;
use glommio_tokio::with_tokio;
use sea_orm::{ConnectionTrait, Database, DatabaseBackend, Statement};

use crate::{Result, sql};

diesel::table! {
    numbers (number) {
        number -> BigInt,
    }
}

/// A connection that blocks, on the threads for that.
pub async fn diesel() -> Result<String> {
    let sum = executor().spawn_blocking(|| {
        let mut connection = SqliteConnection::establish(":memory:")?;
        diesel::sql_query("CREATE TABLE numbers (number BIGINT PRIMARY KEY)")
            .execute(&mut connection)?;
        let all: Vec<_> = (1..=100_i64)
            .map(|number| numbers::number.eq(number))
            .collect();
        diesel::insert_into(numbers::table)
            .values(all)
            .execute(&mut connection)?;
        let all: Vec<i64> = numbers::table
            .select(numbers::number)
            .load(&mut connection)?;
        Ok::<_, Box<dyn Error + Send + Sync>>(all.into_iter().sum::<i64>())
    });
    let sum = sum.await.map_err(|error| error.to_string())?;
    Ok(format!("100 rows, sum {sum}"))
}

async fn ask(connection: &mut AsyncPgConnection) -> Result<i64> {
    let mut sum = 0;
    for number in 0..100_i64 {
        let query = diesel::select(number.into_sql::<BigInt>() + 1_i64);
        sum += diesel_async::RunQueryDsl::get_result::<i64>(query, connection).await?;
    }
    Ok(sum)
}

/// Its own connections are tokio's.
pub async fn diesel_async(url: &str) -> Result<String> {
    with_tokio(async {
        let mut connection = AsyncPgConnection::establish(url).await?;
        let sum = ask(&mut connection).await?;
        Ok(format!("100 queries, sum {sum}"))
    })
    .await
}

/// On a socket of ours, without a tokio runtime.
pub async fn diesel_async_native(url: &str) -> Result<String> {
    let client = sql::connect(url).await?;
    let mut connection = AsyncPgConnection::try_from(client).await?;
    let sum = ask(&mut connection).await?;
    Ok(format!("100 queries, sum {sum}"))
}

pub async fn sea_orm(url: &str) -> Result<String> {
    with_tokio(async {
        let database = Database::connect(url).await?;
        let queries = (0..100_i64).map(|number| {
            let database = &database;
            async move {
                let query = Statement::from_sql_and_values(
                    DatabaseBackend::Postgres,
                    "SELECT $1::BIGINT + 1 AS number",
                    [number.into()],
                );
                let row = database.query_one_raw(query).await?.ok_or("no row")?;
                Ok::<_, Box<dyn Error>>(row.try_get::<i64>("", "number")?)
            }
        });
        let sum: i64 = try_join_all(queries).await?.into_iter().sum();
        database.close().await?;
        Ok(format!("100 queries, sum {sum}"))
    })
    .await
}
