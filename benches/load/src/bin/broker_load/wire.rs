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
            let publishing = spawn(load, publisher, &load.publishes, Inbox::default(), frames);
            let consuming = spawn(load, consumer, &load.acks, Inbox::default(), frames);
            Ok(Box::pin(or(publishing, consuming)))
        }
        Wire::Redis(stream) => {
            // A connection that waits for messages does nothing else meanwhile.
            let reader = connect().await?;
            create(&publisher, stream).await?;
            let confirm = |load: &Load, token: Token<'_>, now| {
                let Token::Bytes(_) = token else {
                    return Err(malformed("no name for a message"));
                };
                load.confirmed(now);
                Ok(())
            };
            let confirms = move |load: &Load, inbox: &mut Inbox| tokens(load, inbox, confirm);
            let publishing = spawn(load, publisher, &load.publishes, Inbox::default(), confirms);
            let ack = |load: &Load, token: Token<'_>, now| {
                let Token::Integer(acked) = token else {
                    return Err(malformed("no number of acks"));
                };
                load.acked(acked == 1, now);
                Ok(())
            };
            let acks = move |load: &Load, inbox: &mut Inbox| tokens(load, inbox, ack);
            let acking = spawn(load, consumer, &load.acks, Inbox::default(), acks);
            let (asks, mut reading) = (Rc::new(Outbox::default()), Reading::default());
            let ask = {
                let (asks, stream) = (Rc::clone(&asks), stream.clone());
                move || asks.push(|out| stream.append_read(out))
            };
            // Redis need not wait for the next one when it has answered the first.
            ask();
            ask();
            let messages = move |load: &Load, inbox: &mut Inbox| {
                tokens(load, inbox, |load, token, now| {
                    if let Some((id, payload)) = reading.message(token)? {
                        load.delivered(id, payload, now);
                        if reading.is_complete() {
                            ask();
                        }
                    }
                    Ok(())
                })
            };
            let reading = spawn(load, reader, &asks, Inbox::default(), messages);
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
            let confirms = |load: &Load, inbox: &mut Inbox| events(load, &load.publishes, inbox);
            let publishing = spawn(load, publisher, &load.publishes, confirmed, confirms);
            let messages = |load: &Load, inbox: &mut Inbox| events(load, &load.acks, inbox);
            let consuming = spawn(load, consumer, &load.acks, acked, messages);
            Ok(Box::pin(or(publishing, consuming)))
        }
    }
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

/// Sends what is in the outbox, and has the replies handled, at first those in `inbox`: `receive` takes what is whole.
fn spawn(
    load: &Rc<Load>,
    link: Duplex,
    outbox: &Rc<Outbox>,
    mut inbox: Inbox,
    mut receive: impl FnMut(&Load, &mut Inbox) -> io::Result<()> + 'static,
) -> Task<io::Result<()>> {
    let (load, outbox) = (Rc::clone(load), Rc::clone(outbox));
    spawn_local(async move {
        let receiving = async {
            loop {
                receive(&load, &mut inbox)?;
                load.progress();
                executor().yield_now().await;
                if !inbox.receive(&link).await? {
                    return Err(closed());
                }
            }
        };
        let sending = async {
            loop {
                outbox.send(&link).await?;
            }
        };
        or(receiving, sending).await
    })
}

/// Replies of the example's broker, on either of its connections.
fn frames(load: &Load, inbox: &mut Inbox) -> io::Result<()> {
    let now = load.now();
    while let Some(frame) = inbox.next_frame()? {
        match Reply::parse(frame)? {
            Reply::Confirm { .. } => load.confirmed(now),
            Reply::Refuse { .. } => load.refused(),
            Reply::Deliver {
                delivery, payload, ..
            } => load.delivered((delivery, 0), payload, now),
            Reply::Acked { in_time, .. } => load.acked(in_time, now),
        }
    }
    Ok(())
}

/// Hands over the tokens that Redis has sent.
fn tokens(
    load: &Load,
    inbox: &mut Inbox,
    mut handle: impl FnMut(&Load, Token<'_>, u64) -> io::Result<()>,
) -> io::Result<()> {
    let now = load.now();
    while let Some((token, length)) = Token::parse(inbox.unread())? {
        handle(load, token, now)?;
        inbox.take(length);
    }
    Ok(())
}

/// What NATS sends, on the connection that has this outbox.
fn events(load: &Load, outbox: &Outbox, inbox: &mut Inbox) -> io::Result<()> {
    let now = load.now();
    while let Some((event, length)) = Event::parse(inbox.unread())? {
        match event {
            Event::Message {
                subject,
                reply,
                payload,
            } => match subject {
                nats::CONFIRM if nats::is_done(payload) => load.confirmed(now),
                nats::CONFIRM => load.refused(),
                nats::ACKED => load.acked(true, now),
                _ => load.delivered(nats::sequence(reply)?, payload, now),
            },
            Event::Ping => outbox.push(|out| out.extend_from_slice(PONG)),
            Event::Pong | Event::Info => {}
        }
        inbox.take(length);
    }
    Ok(())
}

const PONG: &[u8] = b"PONG\r\n";

fn closed() -> io::Error {
    io::Error::other("the broker has closed the connection")
}
