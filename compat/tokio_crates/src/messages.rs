//! Brokers, and channels that are not tied to a runtime.

use futures_util::StreamExt;
use glommio::{LocalExecutorBuilder, spawn_local};
use glommio_tokio::with_tokio;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use rumqttc::{AsyncClient, Event, MqttOptions, Packet, QoS};

use crate::Result;

pub async fn async_nats(port: &str) -> Result<String> {
    with_tokio(async {
        let client = async_nats::connect(format!("127.0.0.1:{port}")).await?;
        let mut messages = client.subscribe("subject").await?;
        for number in 0..100 {
            client.publish("subject", number.to_string().into()).await?;
        }
        client.flush().await?;
        for number in 0..100 {
            let message = messages.next().await.ok_or("it has ended")?;
            assert_eq!(message.payload, number.to_string());
        }
        client.drain().await?;
        Ok("100 messages".to_owned())
    })
    .await
}

pub async fn rumqttc(port: &str) -> Result<String> {
    let options = MqttOptions::new("compat", "127.0.0.1", port.parse()?);
    with_tokio(async {
        let (client, mut events) = AsyncClient::new(options, 10);
        client.subscribe("topic", QoS::AtLeastOnce).await?;
        let mut received = 0;
        while received < 100 {
            match events.poll().await? {
                // The second publishes when the first has come.
                Event::Incoming(Packet::SubAck(_)) => publish(&client, 0).await?,
                Event::Incoming(Packet::Publish(message)) => {
                    assert_eq!(message.payload, received.to_string());
                    received += 1;
                    publish(&client, received).await?;
                }
                _ => {}
            }
        }
        Ok(format!("{received} messages"))
    })
    .await
}

pub async fn lapin(port: &str) -> Result<String> {
    let url = format!("amqp://127.0.0.1:{port}");
    with_tokio(async {
        let connection = Connection::connect(&url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        let queue = QueueDeclareOptions::default();
        let none = FieldTable::default;
        channel.queue_declare("queue".into(), queue, none()).await?;
        let consume = BasicConsumeOptions::default();
        let mut messages = channel
            .basic_consume("queue".into(), "consumer".into(), consume, none())
            .await?;
        for number in 0..100 {
            let (options, text) = (BasicPublishOptions::default(), number.to_string());
            let properties = BasicProperties::default();
            channel
                .basic_publish(
                    "".into(),
                    "queue".into(),
                    options,
                    text.as_bytes(),
                    properties,
                )
                .await?
                .await?;
        }
        for number in 0..100 {
            let message = messages.next().await.ok_or("it has ended")??;
            assert_eq!(message.data, number.to_string().as_bytes());
            message.ack(BasicAckOptions::default()).await?;
        }
        connection.close(200, "done".into()).await?;
        Ok("100 messages".to_owned())
    })
    .await
}

async fn publish(client: &AsyncClient, number: u32) -> Result {
    let text = number.to_string();
    Ok(client
        .publish("topic", QoS::AtLeastOnce, false, text)
        .await?)
}

/// Between two executors.
pub async fn flume() -> Result<String> {
    let (sender, receiver) = flume::bounded(4);
    let other = LocalExecutorBuilder::default().spawn(move || async move {
        let mut sum = 0_u64;
        while let Ok(number) = receiver.recv_async().await {
            sum += number;
        }
        sum
    })?;
    for number in 1..=1000 {
        sender.send_async(number).await?;
    }
    drop(sender);
    Ok(format!("sum {}", other.join()?))
}

/// tokio's channels and locks need no runtime.
pub async fn tokio_sync() -> Result<String> {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
    let other = LocalExecutorBuilder::default().spawn(move || async move {
        for number in 1..=1000_u64 {
            sender.send(number).await.expect("it is received");
        }
    })?;
    let semaphore = std::rc::Rc::new(tokio::sync::Semaphore::new(1));
    let mut sum = 0;
    while let Some(number) = receiver.recv().await {
        let semaphore = semaphore.clone();
        sum += spawn_local(async move { semaphore.acquire().await.map(|_| number) }).await?;
    }
    other.join()?;
    Ok(format!("sum {sum}"))
}
