//! A client of the broker: its requests, and what it is owed.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future::or;
use glommio::executor;
use glommio::net::TcpStream;
use glommio::sync::CancellationToken;

use super::frames::malformed;
use super::link::{Duplex, Inbox, Outbox};
use super::protocol::{Reply, Request};
use super::queues::{Broker, Consumer};

impl Broker {
    /// Serves a client until it leaves, or `closing` is cancelled. What it is owed is sent in any
    /// case.
    ///
    /// # Errors
    ///
    /// Those of the stream, and if the client sends nonsense.
    pub async fn serve(&self, stream: TcpStream, closing: &CancellationToken) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let client = Client {
            broker: self,
            link: Duplex::new(stream),
            outbox: Rc::default(),
            consumers: RefCell::default(),
        };
        let over = async {
            closing.cancelled().await;
            Ok(())
        };
        or(over, or(client.receive(), client.send())).await?;
        client.outbox.flush(&client.link).await?;
        client.link.close().await
    }
}

struct Client<'a> {
    broker: &'a Broker,
    link: Duplex,
    outbox: Rc<Outbox>,
    consumers: RefCell<Vec<Rc<Consumer>>>,
}

impl Client<'_> {
    async fn receive(&self) -> io::Result<()> {
        let mut inbox = Inbox::default();
        while inbox.receive(&self.link).await? {
            while let Some(frame) = inbox.next_frame()? {
                self.handle(Request::parse(frame)?)?;
            }
            // A client that does not read its replies is not read.
            self.outbox.fewer_than(REPLY_BYTES_MAX).await;
            // There may be more to read already. The replies, and other clients, come first.
            executor().yield_now().await;
        }
        Ok(())
    }

    fn handle(&self, request: Request<'_>) -> io::Result<()> {
        let reply = match request {
            Request::Publish {
                topic,
                number,
                payload,
            } => {
                if self.broker.publish(topic, payload) {
                    Reply::Confirm { number }
                } else {
                    Reply::Refuse { number }
                }
            }
            Request::Ack { delivery } => {
                self.broker.ack(delivery, &self.outbox);
                return Ok(());
            }
            Request::Subscribe {
                topic,
                group,
                credit,
            } => {
                let consumer = self.broker.subscribe(topic, group, credit, &self.outbox);
                let consumer = consumer.ok_or_else(|| malformed("no such topic or group"))?;
                self.consumers.borrow_mut().push(consumer);
                return Ok(());
            }
        };
        self.outbox.push(|out| reply.append_to(out));
        Ok(())
    }

    async fn send(&self) -> io::Result<()> {
        loop {
            self.outbox.send(&self.link).await?;
            for consumer in &*self.consumers.borrow() {
                self.broker.resume(consumer);
            }
        }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        for consumer in &*self.consumers.borrow() {
            self.broker.unsubscribe(consumer);
        }
    }
}

/// A client that reads nothing for so long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// More than the deliveries of a consumer may take: else acks would not be read.
const REPLY_BYTES_MAX: usize = 8 << 20;
