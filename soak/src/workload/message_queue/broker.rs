//! The broker: keeps messages until they are acked, and redelivers them when their deadline passes.
//!
//! Each delivery arms one `TimerActionOnce`, the next one from inside that of the delivery before.

use glommio::channels::watch::SharedSender;
use glommio::{Latency, Shares};

use super::link::{Frame, Kind, Link};
use super::script::ATTEMPTS_MAX;
use crate::map::HashMap;
use crate::workload::alarms::Alarms;
use crate::workload::prelude::*;

/// Accepts `connections` connections, serves them to their end, and settles.
pub(crate) async fn run(
    checker: Rc<Checker>,
    connections: usize,
    host: IpAddr,
    bound: SharedSender<Option<SocketAddr>>,
) {
    let listener = TcpListener::bind((host, 0)).expect("there is a free port");
    let address = listener.local_addr();
    // Clients that are gone do not need it.
    let _ = bound.send(Some(address.expect("a bound listener has an address")));
    checker.spawn_sweeper();
    let broker = Broker::new(Rc::clone(&checker));

    let mut served = Vec::new();
    while served.len() < connections {
        // A client that never comes must not keep the broker from ending.
        match or(async { Some(listener.accept().await) }, drained(&checker)).await {
            Some(Ok(stream)) => served.push(spawn_local(Rc::clone(&broker).serve(stream))),
            Some(Err(error)) => checker.ended(Invariant::Deliveries, "accept", Err(error)),
            None => break,
        }
    }
    drop(listener);
    for connection in served {
        connection.await;
    }
    broker.finish();
}

async fn drained<T>(checker: &Checker) -> Option<T> {
    while !checker.control.is_draining() {
        sleep(Duration::from_millis(50)).await;
    }
    None
}

struct Broker {
    checker: Rc<Checker>,
    messages: RefCell<HashMap<u64, Message>>,
    /// Of deliveries.
    deadlines: Rc<Alarms>,
    deliveries: Cell<u64>,
    deliveries_settled: Cell<u64>,
}

struct Message {
    link: Rc<Link>,
    payload: Box<[u8]>,
    allowance: Duration,
    attempt: u8,
    /// Its deadline.
    key: Key,
}

impl Broker {
    fn new(checker: Rc<Checker>) -> Rc<Self> {
        let latency = Latency::Matters(Duration::from_millis(10));
        let queue = executor().create_task_queue(Shares::default(), latency, "deadlines");
        Rc::new(Broker {
            deadlines: Alarms::actions(&checker, queue),
            checker,
            messages: RefCell::default(),
            deliveries: Cell::new(0),
            deliveries_settled: Cell::new(0),
        })
    }

    async fn serve(self: Rc<Self>, stream: TcpStream) {
        let (link, writer) = match Link::start(stream, &self.checker) {
            Ok(started) => started,
            Err(error) => {
                return self
                    .checker
                    .ended(Invariant::Deliveries, "connection", Err(error));
            }
        };
        let ended = link.receive(|frame| self.handle(&link, frame)).await;
        self.checker
            .ended(Invariant::Deliveries, "broker's read", ended);
        self.abandon(&link);
        link.close();
        self.checker
            .ended(Invariant::Deliveries, "broker's write", writer.await);
    }

    fn handle(self: &Rc<Self>, link: &Rc<Link>, frame: Frame<'_>) {
        match frame.kind {
            Kind::Publish => self.publish(link, frame),
            Kind::Ack => self.ack(frame.id, frame.attempt),
            Kind::Extend => self.extend(frame.id, frame.attempt),
            _ => self.complain("a client spoke as a broker".to_owned()),
        }
    }

    fn publish(
        self: &Rc<Self>,
        link: &Rc<Link>,
        Frame {
            id, ns, payload, ..
        }: Frame<'_>,
    ) {
        let allowance = Duration::from_nanos(ns);
        let key = self.deliver(link, id, 1, allowance, payload);
        let message = Message {
            link: Rc::clone(link),
            payload: payload.into(),
            allowance,
            attempt: 1,
            key,
        };
        let before = self.messages.borrow_mut().insert(id, message);
        if before.is_some() {
            self.complain(format!("message {id} was published twice"));
        }
        let gauges = &self.checker.stats.gauges;
        gauges.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a delivery and arms its deadline.
    fn deliver(
        self: &Rc<Self>,
        link: &Link,
        id: u64,
        attempt: u8,
        allowance: Duration,
        payload: &[u8],
    ) -> Key {
        let deadline = clock::now() + allowance;
        let broker = Rc::clone(self);
        let due = async move { broker.expired(id, attempt) };
        let key = self.deadlines.arm(deadline, due);
        link.send(&Frame {
            ns: self.checker.control.since_start_ns(deadline),
            payload,
            ..Frame::new(Kind::Deliver, id, attempt)
        });
        self.deliveries.set(self.deliveries.get() + 1);
        key
    }

    /// The deadline of a delivery has passed.
    fn expired(self: &Rc<Self>, id: u64, attempt: u8) {
        bump(&self.checker.stats.gauges.message_timeouts);
        let mut messages = self.messages.borrow_mut();
        let Some(message) = messages.get_mut(&id).filter(|it| it.attempt == attempt) else {
            drop(messages);
            return self.complain(format!(
                "a deadline of message {id} was armed beside its own"
            ));
        };
        if message.attempt == ATTEMPTS_MAX {
            let message = messages.remove(&id).expect("it was found just above");
            drop(messages);
            self.settle(id, &message, true);
        } else {
            message.attempt += 1;
            bump(&self.checker.stats.gauges.messages_redelivered);
            let Message {
                link,
                payload,
                allowance,
                attempt,
                ..
            } = &*message;
            message.key = self.deliver(link, id, *attempt, *allowance, payload);
        }
    }

    fn ack(&self, id: u64, attempt: u8) {
        let mut messages = self.messages.borrow_mut();
        let is_current = messages.get(&id).is_some_and(|it| it.attempt == attempt);
        let Some(message) = is_current.then(|| messages.remove(&id)).flatten() else {
            drop(messages);
            return self.judge_stale(id);
        };
        drop(messages);
        bump(&self.checker.stats.gauges.messages_acked);
        self.deadlines.cancel(message.key);
        self.settle(id, &message, false);
    }

    fn extend(&self, id: u64, attempt: u8) {
        let messages = self.messages.borrow();
        let Some(message) = messages
            .get(&id)
            .filter(|message| message.attempt == attempt)
        else {
            return self.judge_stale(id);
        };
        let deadline = clock::now() + message.allowance;
        if !self.deadlines.rearm(message.key, deadline) {
            self.complain(format!("message {id} was in flight without a deadline"));
        }
    }

    fn settle(&self, id: u64, message: &Message, is_dead: bool) {
        let kind = if is_dead { Kind::Dead } else { Kind::Settled };
        let attempts = message.attempt;
        message.link.send(&Frame::new(kind, id, attempts));
        let settled = self.deliveries_settled.get() + u64::from(attempts);
        self.deliveries_settled.set(settled);
        let gauges = &self.checker.stats.gauges;
        gauges.in_flight.fetch_sub(1, Ordering::Relaxed);
        if is_dead {
            bump(&gauges.messages_dead);
        }
    }

    /// Acks and extensions that come after the deadline find nothing, and must change nothing: what
    /// they hit by mistake shows as a lost timer or a wrong count of deliveries.
    fn judge_stale(&self, id: u64) {
        let armed = self
            .messages
            .borrow()
            .get(&id)
            .is_none_or(|message| self.checker.is_armed(message.key));
        self.checker.holds(Invariant::StaleCancels, armed, || {
            format!("message {id} lost its deadline to an ack that came too late")
        });
    }

    /// Gives up what a closed connection has left: nothing, if its client ended in order.
    fn abandon(&self, link: &Rc<Link>) {
        let is_left = |_: &u64, message: &mut Message| Rc::ptr_eq(&message.link, link);
        let left: Vec<_> = self.messages.borrow_mut().extract_if(is_left).collect();
        for (_, message) in &left {
            self.deadlines.cancel(message.key);
        }
        let left = left.len() as u64;
        let gauges = &self.checker.stats.gauges;
        gauges.in_flight.fetch_sub(left, Ordering::Relaxed);
        self.checker.check(Invariant::Deliveries, left, || {
            format!("a connection ended with {left} messages not settled")
        });
    }

    fn finish(&self) {
        self.deadlines.cancel_all();
        let (sent, settled) = (self.deliveries.get(), self.deliveries_settled.get());
        self.checker
            .check(Invariant::Deliveries, sent.abs_diff(settled), || {
                format!("{sent} deliveries were made, {settled} belong to settled messages")
            });
    }

    fn complain(&self, what: String) {
        self.checker.holds(Invariant::Deliveries, false, || what);
    }
}
