//! Clients of Kafka, against the cluster in memory that librdkafka has for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::try_join_all;
use glommio_tokio::{Tokio, with_tokio};
use rdkafka::ClientConfig;
use rdkafka::Message;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{FutureProducer, FutureRecord};
use rskafka::chrono::Utc;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{Compression, UnknownTopicHandling};
use rskafka::record::Record;

use crate::Result;

const TOPIC: &str = "topic";

/// It has threads of its own, and wakes the tasks.
pub async fn rdkafka() -> Result<String> {
    let cluster = MockCluster::new(1)?;
    cluster.create_topic(TOPIC, 1, 1)?;
    let tokio = Tokio::start()?;
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", cluster.bootstrap_servers())
        .set("group.id", "group")
        .set("auto.offset.reset", "earliest");
    tokio
        .with(async {
            let producer: FutureProducer = config.create()?;
            let texts: Vec<_> = (0..100).map(|number| number.to_string()).collect();
            let sends = texts.iter().map(|text| {
                let record = FutureRecord::<(), _>::to(TOPIC).payload(text);
                producer.send(record, Duration::from_secs(30))
            });
            try_join_all(sends.map(|send| async { send.await.map_err(|(error, _)| error) }))
                .await?;
            let consumer: StreamConsumer = config.create()?;
            consumer.subscribe(&[TOPIC])?;
            for text in &texts {
                let message = consumer.recv().await?;
                assert_eq!(message.payload(), Some(text.as_bytes()));
            }
            Ok(format!("{} messages", texts.len()))
        })
        .await
}

pub async fn rskafka() -> Result<String> {
    let cluster = MockCluster::new(1)?;
    cluster.create_topic(TOPIC, 1, 1)?;
    let servers = cluster.bootstrap_servers();
    with_tokio(async move {
        let servers = servers.split(',').map(str::to_owned).collect();
        let client = ClientBuilder::new(servers).build().await?;
        let partition = client
            .partition_client(TOPIC, 0, UnknownTopicHandling::Retry)
            .await?;
        let records = (0..100).map(|number| Record {
            key: None,
            value: Some(number.to_string().into_bytes()),
            headers: BTreeMap::new(),
            timestamp: Utc::now(),
        });
        partition
            .produce(records.collect(), Compression::NoCompression)
            .await?;
        let (records, _) = partition.fetch_records(0, 1..1_000_000, 10_000).await?;
        for (number, record) in records.iter().enumerate() {
            let text = number.to_string();
            assert_eq!(record.record.value.as_deref(), Some(text.as_bytes()));
        }
        Ok(format!("{} messages", records.len()))
    })
    .await
}
