//! The protocols: what is sent, the connections that it takes, and what comes back.

use std::io;
use std::pin::Pin;
use std::rc::Rc;

use examples::broker::frames::malformed;
use examples::broker::link::{Duplex, Inbox, Outbox};
use examples::broker::protocol::{Reply, Request};
use futures_lite::future::or;
use glommio::{Task, executor, spawn_local};

use crate::load::Load;
use crate::nats::{self, Event, JetStream};
use crate::redis::{EntryId, Reading, Stream, Token};

/// What the broker understands.
pub enum Wire {
    /// The frames of the example `broker`.
    Broker { topic: String },
    /// The commands of Redis.
    Redis(Stream),
    /// The messages of NATS' JetStream.
    Nats(JetStream),
}

/// What an ack names; the example's broker needs the first number alone.
pub type Delivery = EntryId;

impl Wire {
    pub fn append_publish(&self, out: &mut Vec<u8>, number: u64, payload: &[u8]) {
        match self {
            Wire::Broker { topic } => Request::Publish {
                topic,
                number,
                payload,
            }
            .append_to(out),
            Wire::Redis(stream) => stream.append_publish(out, payload),
            Wire::Nats(stream) => stream.append_publish(out, payload),
        }
    }

    pub fn append_ack(&self, out: &mut Vec<u8>, delivery: Delivery) {
        match self {
            Wire::Broker { .. } => Request::Ack {
                delivery: delivery.0,
            }
            .append_to(out),
            Wire::Redis(stream) => stream.append_ack(out, delivery),
            Wire::Nats(stream) => stream.append_ack(out, delivery),
        }
    }
}

/// Ends with the first connection that fails.
pub type Talking = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// Connects and subscribes; what is returned sends and receives.
pub async fn start(
    load: &Rc<Load>,
    connect: impl AsyncFn() -> io::Result<Duplex>,
    credit: u64,
) -> io::Result<Talking> {
    let (publisher, consumer) = (connect().await?, connect().await?);
    match &load.wire {
        Wire::Broker { topic } => {
            let subscribe = Request::Subscribe {
                topic,
                group: "load",
                credit: u32::try_from(credit).unwrap_or(u32::MAX),
            };
            load.acks.push(|out| subscribe.append_to(out));
            let publishing = spawn(load, |load| async move {
                exchange(&publisher, &load.publishes, Frames(&load)).await
            });
            let consuming = spawn(load, |load| async move {
                exchange(&consumer, &load.acks, Frames(&load)).await
            });
            Ok(Box::pin(or(publishing, consuming)))
        }
        Wire::Redis(stream) => {
            // A connection that waits for messages does nothing else meanwhile.
            let reader = connect().await?;
            create(&publisher, stream).await?;
            let publishing = spawn(load, |load| async move {
                exchange(&publisher, &load.publishes, Confirms(&load)).await
            });
            let acking = spawn(load, |load| async move {
                exchange(&consumer, &load.acks, Acks(&load)).await
            });
            let reading = spawn(load, |load| async move {
                let asks = Outbox::default();
                let messages = Messages::new(&load, &asks);
                exchange(&reader, &asks, messages).await
            });
            Ok(Box::pin(or(publishing, or(acking, reading))))
        }
        Wire::Nats(stream) => {
            let (mut acked, mut confirmed) = (Inbox::default(), Inbox::default());
            for (link, inbox, subjects) in [
                (&consumer, &mut acked, [nats::DELIVER, nats::ACKED]),
                (&publisher, &mut confirmed, [nats::SETUP, nats::CONFIRM]),
            ] {
                let connect = |out: &mut Vec<u8>| nats::append_connect(out, &subjects);
                ask(link, inbox, connect, |event| Ok(*event == Event::Pong)).await?;
            }
            let create = |out: &mut Vec<u8>| stream.append_create_stream(out);
            ask(&publisher, &mut confirmed, create, is_made).await?;
            let create = |out: &mut Vec<u8>| stream.append_create_consumer(out);
            ask(&publisher, &mut confirmed, create, is_made).await?;
            let publishing = spawn(load, |load| async move {
                let events = Events(&load, &load.publishes);
                exchange_from(confirmed, &publisher, &load.publishes, events).await
            });
            let consuming = spawn(load, |load| async move {
                let events = Events(&load, &load.acks);
                exchange_from(acked, &consumer, &load.acks, events).await
            });
            Ok(Box::pin(or(publishing, consuming)))
        }
    }
}

fn spawn<F: Future<Output = io::Result<()>> + 'static>(
    load: &Rc<Load>,
    task: impl FnOnce(Rc<Load>) -> F,
) -> Task<io::Result<()>> {
    spawn_local(task(Rc::clone(load)))
}

/// Makes the stream, before a message is published or asked for.
async fn create(link: &Duplex, stream: &Stream) -> io::Result<()> {
    let (outbox, mut inbox) = (Outbox::default(), Inbox::default());
    outbox.push(|out| stream.append_create(out));
    outbox.flush(link).await?;
    while inbox.receive(link).await? {
        match Token::parse(inbox.unread())? {
            Some((Token::Status, _)) => return Ok(()),
            Some(_) => return Err(malformed("the stream cannot be made")),
            None => {}
        }
    }
    Err(closed())
}

/// Sends to NATS, and waits for the event that `is_answer`.
async fn ask(
    link: &Duplex,
    inbox: &mut Inbox,
    fill: impl FnOnce(&mut Vec<u8>),
    is_answer: impl Fn(&Event<'_>) -> io::Result<bool>,
) -> io::Result<()> {
    let outbox = Outbox::default();
    outbox.push(fill);
    outbox.flush(link).await?;
    loop {
        while let Some((event, length)) = Event::parse(inbox.unread())? {
            if event == Event::Ping {
                outbox.push(|out| out.extend_from_slice(PONG));
            }
            let is_answered = is_answer(&event)?;
            inbox.take(length);
            if is_answered {
                return outbox.flush(link).await;
            }
        }
        outbox.flush(link).await?;
        if !inbox.receive(link).await? {
            return Err(closed());
        }
    }
}

/// Whether this is the answer to the making of a stream or a consumer.
fn is_made(event: &Event<'_>) -> io::Result<bool> {
    match event {
        Event::Message { payload, .. } if nats::is_done(payload) => Ok(true),
        Event::Message { payload, .. } => {
            let text = String::from_utf8_lossy(payload);
            Err(io::Error::other(format!("NATS says: {text}")))
        }
        _ => Ok(false),
    }
}

/// Takes from an inbox what is whole.
trait Receive {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()>;

    fn load(&self) -> &Load;
}

/// Sends what is in the outbox, and handles the replies.
async fn exchange(link: &Duplex, outbox: &Outbox, receiver: impl Receive) -> io::Result<()> {
    exchange_from(Inbox::default(), link, outbox, receiver).await
}

/// The same with what has come already.
async fn exchange_from(
    mut inbox: Inbox,
    link: &Duplex,
    outbox: &Outbox,
    mut receiver: impl Receive,
) -> io::Result<()> {
    let receiving = async {
        loop {
            receiver.receive(&mut inbox)?;
            receiver.load().progress();
            executor().yield_now().await;
            if !inbox.receive(link).await? {
                return Err(closed());
            }
        }
    };
    let sending = async {
        loop {
            outbox.send(link).await?;
        }
    };
    or(receiving, sending).await
}

/// Replies of the example's broker, on either of its connections.
struct Frames<'a>(&'a Load);

impl Receive for Frames<'_> {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        let now = self.0.now();
        while let Some(frame) = inbox.next_frame()? {
            match Reply::parse(frame)? {
                Reply::Confirm { .. } => self.0.confirmed(now),
                Reply::Refuse { .. } => self.0.refused(),
                Reply::Deliver {
                    delivery, payload, ..
                } => self.0.delivered((delivery, 0), payload, now),
                Reply::Acked { in_time, .. } => self.0.acked(in_time, now),
            }
        }
        Ok(())
    }

    fn load(&self) -> &Load {
        self.0
    }
}

/// What Redis says to `XADD`.
struct Confirms<'a>(&'a Load);

impl Receive for Confirms<'_> {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        let now = self.0.now();
        while let Some((token, length)) = Token::parse(inbox.unread())? {
            match token {
                Token::Bytes(_) => self.0.confirmed(now),
                _ => return Err(malformed("no name for a message")),
            }
            inbox.take(length);
        }
        Ok(())
    }

    fn load(&self) -> &Load {
        self.0
    }
}

/// What it says to `XACK`.
struct Acks<'a>(&'a Load);

impl Receive for Acks<'_> {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        let now = self.0.now();
        while let Some((token, length)) = Token::parse(inbox.unread())? {
            match token {
                Token::Integer(acked) => self.0.acked(acked == 1, now),
                _ => return Err(malformed("no number of acks")),
            }
            inbox.take(length);
        }
        Ok(())
    }

    fn load(&self) -> &Load {
        self.0
    }
}

/// What it says to `XREADGROUP`.
struct Messages<'a> {
    load: &'a Load,
    asks: &'a Outbox,
    reading: Reading,
}

impl<'a> Messages<'a> {
    fn new(load: &'a Load, asks: &'a Outbox) -> Self {
        let messages = Messages {
            load,
            asks,
            reading: Reading::default(),
        };
        // Redis need not wait for the next one when it has answered the first.
        messages.ask();
        messages.ask();
        messages
    }

    fn ask(&self) {
        if let Wire::Redis(stream) = &self.load.wire {
            self.asks.push(|out| stream.append_read(out));
        }
    }
}

impl Receive for Messages<'_> {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        let now = self.load.now();
        while let Some((token, length)) = Token::parse(inbox.unread())? {
            if let Some((id, payload)) = self.reading.message(token)? {
                self.load.delivered(id, payload, now);
                if self.reading.is_complete() {
                    self.ask();
                }
            }
            inbox.take(length);
        }
        Ok(())
    }

    fn load(&self) -> &Load {
        self.load
    }
}

/// What NATS sends, on either connection; the outbox is that of the connection.
struct Events<'a>(&'a Load, &'a Outbox);

impl Receive for Events<'_> {
    fn receive(&mut self, inbox: &mut Inbox) -> io::Result<()> {
        let now = self.0.now();
        while let Some((event, length)) = Event::parse(inbox.unread())? {
            match event {
                Event::Message {
                    subject,
                    reply,
                    payload,
                } => match subject {
                    nats::CONFIRM if nats::is_done(payload) => self.0.confirmed(now),
                    nats::CONFIRM => self.0.refused(),
                    nats::ACKED => self.0.acked(true, now),
                    _ => self.0.delivered(nats::sequence(reply)?, payload, now),
                },
                Event::Ping => self.1.push(|out| out.extend_from_slice(PONG)),
                Event::Pong | Event::Info => {}
            }
            inbox.take(length);
        }
        Ok(())
    }

    fn load(&self) -> &Load {
        self.0
    }
}

const PONG: &[u8] = b"PONG\r\n";

fn closed() -> io::Error {
    io::Error::other("the broker has closed the connection")
}
