//! The broker: keeps messages until they are acked, and redelivers them when their deadline passes.
//!
//! Each delivery arms one `TimerActionOnce`, replaced from inside its own action when it fires.
//! Every other message's actions run in a task queue of their own, so that both ways to arm are
//! soaked. Handles of timers that have fired are kept for a while and then cancelled or re-armed
//! although it is too late, when their place in the timer queue has long been another timer's.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_lite::future::or;
use glommio::channels::watch::SharedSender;
use glommio::net::{TcpListener, TcpStream};
use glommio::timer::{TimerActionOnce, sleep};
use glommio::{Latency, Shares, TaskQueueHandle, executor, spawn_local};

use super::link::{Frame, Kind, Link, judge_end};
use super::script::ATTEMPTS_MAX;
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::check::model::Key;
use crate::clock;
use crate::counters::bump;
use crate::map::HashMap;

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
            Some(Err(error)) => judge_end(&checker, "accept", Err(error.into())),
            None => break,
        }
    }
    drop(listener);
    for connection in served {
        connection.await;
    }
    broker.finish().await;
    checker.settle().await;
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
    /// Handles of timers that have fired.
    spent: RefCell<VecDeque<TimerActionOnce<()>>>,
    deadline_queue: TaskQueueHandle,
    deliveries: Cell<u64>,
    deliveries_settled: Cell<u64>,
}

struct Message {
    link: Rc<Link>,
    payload: Box<[u8]>,
    allowance: Duration,
    attempt: u8,
    key: Key,
    deadline: TimerActionOnce<()>,
}

impl Broker {
    fn new(checker: Rc<Checker>) -> Rc<Self> {
        let latency = Latency::Matters(Duration::from_millis(10));
        Rc::new(Broker {
            checker,
            messages: RefCell::default(),
            spent: RefCell::default(),
            deadline_queue: executor().create_task_queue(Shares::default(), latency, "deadlines"),
            deliveries: Cell::new(0),
            deliveries_settled: Cell::new(0),
        })
    }

    async fn serve(self: Rc<Self>, stream: TcpStream) {
        let (link, writer) = match Link::start(stream, &self.checker) {
            Ok(started) => started,
            Err(error) => return judge_end(&self.checker, "connection", Err(error.into())),
        };
        let ended = link.receive(|frame| self.handle(&link, frame)).await;
        judge_end(&self.checker, "broker's read", ended);
        self.abandon(&link);
        link.close();
        judge_end(&self.checker, "broker's write", writer.await);
    }

    fn handle(self: &Rc<Self>, link: &Rc<Link>, frame: Frame<'_>) {
        match frame.kind {
            Kind::Publish => self.publish(link, frame),
            Kind::Ack => self.ack(frame.id, frame.attempt),
            Kind::Extend => self.extend(frame.id, frame.attempt),
            Kind::Ping => {}
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
        let (key, deadline) = self.deliver(link, id, 1, allowance, payload);
        let message = Message {
            link: Rc::clone(link),
            payload: payload.into(),
            allowance,
            attempt: 1,
            key,
            deadline,
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
    ) -> (Key, TimerActionOnce<()>) {
        let deadline = clock::now() + allowance;
        let ticket = self.checker.arm(deadline);
        let (key, told, broker) = (ticket.key, ticket.deadline, Rc::clone(self));
        let action = async move {
            let _live = ticket.live;
            broker.expired(id, key);
        };
        let timer = if id.is_multiple_of(2) {
            TimerActionOnce::do_at_into(told, action, self.deadline_queue)
                .expect("the queue was made in this executor and is never removed")
        } else {
            TimerActionOnce::do_at(told, action)
        };
        link.send(&Frame {
            ns: self.checker.control.since_start_ns(deadline),
            payload,
            ..Frame::new(Kind::Deliver, id, attempt)
        });
        self.deliveries.set(self.deliveries.get() + 1);
        (key, timer)
    }

    /// The deadline of a delivery has passed.
    fn expired(self: &Rc<Self>, id: u64, key: Key) {
        if !self.checker.fired(key) {
            return;
        }
        bump(&self.checker.stats.gauges.message_timeouts);
        let mut messages = self.messages.borrow_mut();
        let Some(message) = messages.get_mut(&id).filter(|message| message.key == key) else {
            drop(messages);
            return self.complain(format!(
                "a deadline of message {id} was armed beside its own"
            ));
        };
        if message.attempt == ATTEMPTS_MAX {
            let message = messages.remove(&id).expect("it was found just above");
            drop(messages);
            self.settle(id, &message, true);
            self.spend(message.deadline);
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
            let (key, timer) = self.deliver(link, id, *attempt, *allowance, payload);
            message.key = key;
            let spent = std::mem::replace(&mut message.deadline, timer);
            drop(messages);
            self.spend(spent);
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
        self.checker.cancel(message.key);
        self.settle(id, &message, false);
        self.cancel(message);
    }

    /// Cancels a deadline that has not fired, in one of the ways there are.
    fn cancel(&self, message: Message) {
        let Message { key, deadline, .. } = message;
        match key.0 % 16 {
            0 => {
                let checker = Rc::clone(&self.checker);
                deadline.destroy();
                spawn_local(async move {
                    let joined = deadline.join().await;
                    checker.holds(Invariant::CancelsHold, joined.is_none(), || {
                        format!("timer {} was destroyed and yet joined with a value", key.0)
                    });
                })
                .detach();
            }
            1 => {
                spawn_local(deadline.cancel()).detach();
            }
            _ => deadline.destroy(),
        }
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
        let told = self.checker.rearm(message.key, deadline);
        message.deadline.rearm_at(told.unwrap_or(deadline));
        if told.is_none() {
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

    /// Keeps the handle of a timer that has fired, and abuses one that was kept before.
    fn spend(&self, timer: TimerActionOnce<()>) {
        let mut spent = self.spent.borrow_mut();
        spent.push_back(timer);
        if spent.len() <= SPENT_MAX {
            return;
        }
        let oldest = spent.pop_front().expect("it is longer than its bound");
        let abuse_by_rearming = spent.len().is_multiple_of(2);
        drop(spent);
        self.abuse(oldest, abuse_by_rearming);
    }

    fn abuse(&self, timer: TimerActionOnce<()>, by_rearming: bool) {
        if by_rearming {
            timer.rearm_in(Duration::from_millis(1));
        } else {
            timer.destroy();
        }
        let checker = Rc::clone(&self.checker);
        spawn_local(async move {
            let joined = timer.join().await;
            checker.holds(Invariant::StaleCancels, joined.is_some(), || {
                "a finished action lost its value to a late cancellation".to_owned()
            });
        })
        .detach();
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
            self.checker.cancel(message.key);
            message.deadline.destroy();
        }
        let left = left.len() as u64;
        let gauges = &self.checker.stats.gauges;
        gauges.in_flight.fetch_sub(left, Ordering::Relaxed);
        self.checker.check(Invariant::Deliveries, left, || {
            format!("a connection ended with {left} messages not settled")
        });
    }

    async fn finish(&self) {
        let spent = std::mem::take(&mut *self.spent.borrow_mut());
        for (index, timer) in spent.into_iter().enumerate() {
            self.abuse(timer, index % 2 == 0);
        }
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

/// Enough that a spent timer's place in the queue has been given away many times.
const SPENT_MAX: usize = 512;
