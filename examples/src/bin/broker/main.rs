//! A message queue over TCP: topics, groups of consumers, acks with deadlines, dead letters.
//!
//! ```console
//! $ cargo run --release -p examples --features timing-wheel --bin broker -- --port 7100
//! listening on 127.0.0.1:7100
//! $ printf '\23\0\0\0P\4jobs12345678hello' | nc -N 127.0.0.1 7100 | tail -c 9; echo
//! C12345678
//! ^C
//! published 1, refused 0, delivered 0, redelivered 0, acked 0, late acks 0, dead 0, in flight 0, waiting 1
//! ```
//!
//! [`examples::broker::protocol`] says what clients send and get: here one has published `hello` to the
//! topic `jobs` as its number 12345678, which the broker has confirmed. The broker delivers a message to one consumer of
//! each group, and holds it in flight until the ack comes. Without an ack in time the message is
//! delivered again, and after `--attempts` deliveries it goes to the topic `NAME.dead`, which is
//! read as any other. Each message in flight has a timer, so a hundred thousand of them are
//! nothing special; `queues.rs` has them. Messages live in memory.
//!
//! Ctrl-C ends the broker in three steps: it accepts no more connections and refuses to publish;
//! delivers nothing more and waits for the acks of what is in flight, until their deadlines; and closes
//! the connections, when all replies have been sent. The last line says how many messages are lost, as
//! they still waited.

#![forbid(unsafe_code)]

mod queues;

use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use examples::broker::frames::malformed;
use examples::broker::link::{Duplex, Inbox, Outbox};
use examples::broker::protocol::{Reply, Request};
use examples::serving::{Serving, Shard};
use futures_lite::future::or;
use glommio::net::TcpStream;
use glommio::sync::{CancellationToken, Gate};
use glommio::{executor, spawn_local};
use queues::{Broker, Consumer, Counts};

/// Brokers messages between TCP clients, on one executor.
#[derive(Clone, Copy, Debug, Parser)]
struct Options {
    #[command(flatten)]
    serving: Serving,

    /// Time that a consumer has to acknowledge a message.
    #[arg(long, default_value = "30s")]
    ack_deadline: humantime::Duration,

    /// Deliveries without an ack after which a message becomes a dead letter.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    attempts: u16,

    /// Messages that may wait for a consumer; more are refused.
    #[arg(long, default_value_t = 1_000_000)]
    waiting_max: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    options.serving.shards = Some(1);
    for counts in options.serving.run("", move |shard| run(shard, options))? {
        println!("{counts}");
    }
    Ok(())
}

async fn run(shard: Shard, options: Options) -> Counts {
    let broker = Rc::new(Broker::new(options));
    // It ends with this function: a task whose handle is dropped is cancelled.
    let _deadlines = spawn_local({
        let broker = broker.clone();
        async move { broker.watch_deadlines().await }
    });
    let (clients, closing) = (Gate::new(), CancellationToken::new());
    let serve = |stream| {
        let pass = clients.enter().expect("the gate is closed later");
        let (broker, closing) = (broker.clone(), closing.clone());
        async move {
            // A client that leaves or sends nonsense ends its own connection and nothing else.
            let _ = serve(stream, &broker, &closing).await;
            drop(pass);
        }
    };
    shard.serve_each(serve).await;
    broker.end().await;
    closing.cancel();
    clients.close().await.expect("it is closed once");
    broker.counts()
}

/// Serves a client until it leaves, or `closing` is cancelled. What it is owed is sent in any case.
async fn serve(stream: TcpStream, broker: &Broker, closing: &CancellationToken) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
    let client = Client {
        broker,
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
