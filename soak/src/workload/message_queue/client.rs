//! A client executor: several connections, each publishing messages and acting on their deliveries.
//!
//! A reply waits for its moment in an alarm. When the run drains, those that still wait are cancelled and everything is
//! acked at once, so that a run ends within a moment although deadlines reach far ahead.

use examples::broker::frames::malformed;
use examples::broker::link::{Duplex, Inbox, Outbox};
use examples::broker::protocol;
use examples::broker::protocol::Request;
use glommio::channels::watch::SharedReceiver;
use glommio::sync::CancellationToken;
use glommio::{Latency, Shares};

use super::script::{ATTEMPTS_MAX, Pattern};
use super::timeouts;
use crate::map::HashMap;
use crate::workload::alarms::Alarms;
use crate::workload::prelude::*;

pub(super) const CONNECTIONS_PER_CLIENT: usize = 4;

/// Runs the connections numbered from `first_connection`, each with up to `window` messages.
pub(super) async fn run(
    checker: Rc<Checker>,
    pattern: Pattern,
    broker: SharedReceiver<Option<SocketAddr>>,
    first_connection: usize,
    window: usize,
) {
    checker.spawn_sweeper();
    let seed = pattern.seed ^ first_connection as u64;
    let timeouts = spawn_local(timeouts::run(Rc::clone(&checker), seed));
    let latency = Latency::Matters(Duration::from_millis(10));
    let queue = executor().create_task_queue(Shares::default(), latency, "replies");
    let connections = first_connection..first_connection + CONNECTIONS_PER_CLIENT;
    let sessions = connections.map(|connection| {
        let alarms = Alarms::new(&checker, (connection % 2 == 1).then_some(queue));
        let talking = converse(broker.clone(), alarms, pattern, connection, window);
        spawn_local(talking)
    });
    for session in sessions.collect::<Vec<_>>() {
        let ended = session.await;
        checker.ended(Invariant::Deliveries, "a client", ended);
    }
    timeouts.await;
}

/// One connection from its beginning to its end.
async fn converse(
    mut broker: SharedReceiver<Option<SocketAddr>>,
    alarms: Rc<Alarms>,
    pattern: Pattern,
    connection: usize,
    window: usize,
) -> glommio::Result<(), ()> {
    while broker.get().is_none() {
        broker.changed().await?;
    }
    let address = broker.get().expect("it is there now");
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let first_id = (connection as u64) << 40;
    let session = Rc::new(Session {
        checker: Rc::clone(&alarms.checker),
        pattern,
        topic: format!("jobs-{connection}"),
        link: Duplex::new(stream),
        outbox: Outbox::default(),
        next_id: Cell::new(first_id),
        next_confirmed: Cell::new(first_id),
        lag: Cell::default(),
        outstanding: RefCell::default(),
        unanswered: RefCell::default(),
        alarms,
        content: RefCell::default(),
    });
    let reader = spawn_local(Rc::clone(&session).receive());
    let closing = CancellationToken::new();
    let writer = spawn_local(Rc::clone(&session).send(closing.clone()));
    session.subscribe(window);
    session.publish_until_drained(window).await;
    session.settle().await;
    closing.cancel();
    writer.await?;
    Ok(reader.await?)
}

struct Session {
    checker: Rc<Checker>,
    pattern: Pattern,
    topic: String,
    link: Duplex,
    outbox: Outbox,
    next_id: Cell<u64>,
    /// Publications are confirmed in order.
    next_confirmed: Cell<u64>,
    /// The worst since the last publication.
    lag: Cell<Duration>,
    outstanding: RefCell<HashMap<u64, Outstanding>>,
    /// By delivery, acks without an answer.
    unanswered: RefCell<HashMap<u64, Ack>>,
    /// Replies that wait for their moment.
    alarms: Rc<Alarms>,
    /// What the payload at hand should be.
    content: RefCell<Vec<u8>>,
}

/// A message published and not settled.
struct Outstanding {
    published: Instant,
    /// As a message, then as a dead letter.
    deliveries: u32,
    /// The latest, and when it came.
    delivery: u64,
    delivered: Instant,
    is_acked: bool,
}

impl Outstanding {
    /// Before this no deadline of the latest delivery can pass. When the first was armed is not known here, but that it
    /// was not before the message was published.
    fn next_deadline(&self, pattern: &Pattern) -> Instant {
        self.published + pattern.ack_deadline * self.deliveries
    }
}

#[derive(Clone, Copy)]
struct Ack {
    /// Of the message.
    id: u64,
    /// The broker may not call it late before.
    deadline: Instant,
}

impl Session {
    async fn receive(self: Rc<Self>) -> io::Result<()> {
        let mut inbox = Inbox::default();
        while inbox.receive(&self.link).await? {
            while let Some(frame) = inbox.next_frame()? {
                self.handle(protocol::Reply::parse(frame)?)?;
            }
        }
        Ok(())
    }

    /// Sends until `closing` is cancelled, and then what there is.
    async fn send(self: Rc<Self>, closing: CancellationToken) -> io::Result<()> {
        let sending = async {
            loop {
                self.outbox.send(&self.link).await?;
            }
        };
        let over = async {
            closing.cancelled().await;
            io::Result::Ok(())
        };
        or(over, sending).await?;
        self.outbox.flush(&self.link).await?;
        self.link.close().await
    }

    fn request(&self, request: &Request<'_>) {
        self.outbox.push(|out| request.append_to(out));
    }

    /// To the messages and to those that die, of which there are never more than the window has.
    fn subscribe(&self, window: usize) {
        for topic in [&self.topic, &format!("{}.dead", self.topic)] {
            self.request(&Request::Subscribe {
                topic,
                group: "clients",
                credit: u32::try_from(window).unwrap_or(u32::MAX),
            });
        }
    }

    async fn publish_until_drained(&self, window: usize) {
        let burst = (window / BURSTS_PER_WINDOW).max(1);
        let mut allowed = burst;
        while !self.checker.control.is_draining() {
            self.outbox.fewer_than(OUTBOX_BYTES_MAX).await;
            allowed = if self.lag.take() > LAG_MAX {
                (allowed - allowed / 8).max(burst)
            } else {
                (allowed + burst).min(window)
            };
            let free = allowed.saturating_sub(self.outstanding.borrow().len());
            for _ in 0..free.min(burst) {
                self.publish();
            }
            let slept = clock::now();
            sleep(PUBLISH_EVERY).await;
            self.lags_by(clock::since(slept).saturating_sub(PUBLISH_EVERY));
        }
    }

    /// This executor, or the broker, is so far behind with its timers.
    fn lags_by(&self, lag: Duration) {
        self.lag.set(self.lag.get().max(lag));
    }

    fn publish(&self) {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let mut content = self.content.borrow_mut();
        self.pattern.payload(id, &mut content);
        let now = clock::now();
        let outstanding = Outstanding {
            published: now,
            deliveries: 0,
            delivery: 0,
            delivered: now,
            is_acked: false,
        };
        self.outstanding.borrow_mut().insert(id, outstanding);
        self.request(&Request::Publish {
            topic: &self.topic,
            number: id,
            payload: &content,
        });
        let gauges = &self.checker.stats.gauges;
        bump(&gauges.messages_published);
        bump(&gauges.in_flight);
    }

    fn handle(self: &Rc<Self>, reply: protocol::Reply<'_>) -> io::Result<()> {
        match reply {
            protocol::Reply::Confirm { number } => {
                let expected = self.next_confirmed.replace(number + 1);
                self.judge(number == expected, || {
                    format!("message {number} was confirmed in place of {expected}")
                });
            }
            protocol::Reply::Refuse { number } => {
                self.judge(false, || format!("message {number} was refused"));
            }
            protocol::Reply::Deliver {
                delivery,
                attempt,
                payload,
            } => {
                let id = payload.first_chunk();
                let id = u64::from_le_bytes(*id.ok_or_else(|| malformed("no message"))?);
                self.delivered(id, delivery, attempt, payload);
            }
            protocol::Reply::Acked { delivery, in_time } => self.acked(delivery, in_time),
        }
        Ok(())
    }

    fn delivered(self: &Rc<Self>, id: u64, delivery: u64, attempt: u16, payload: &[u8]) {
        let mut outstanding = self.outstanding.borrow_mut();
        let Some(message) = outstanding.get_mut(&id) else {
            return self.judge(false, || format!("message {id} came after it was settled"));
        };
        let mut content = self.content.borrow_mut();
        self.pattern.payload(id, &mut content);
        let before = message.deliveries;
        let as_dead_letter = before.checked_sub(ATTEMPTS_MAX.into());
        let expected = 1 + as_dead_letter.unwrap_or(before);
        let is_right = u32::from(attempt) == expected && *content == payload;
        self.judge(is_right, || {
            let came = format!("delivery {attempt} came as number {expected}");
            format!("message {id}: {came}, or with other content")
        });
        let gauges = &self.checker.stats.gauges;
        if before > 0 {
            self.judge_early(message.next_deadline(&self.pattern), || {
                format!("message {id} was delivered again")
            });
            self.lags_by(clock::since(message.delivered + self.pattern.ack_deadline));
            bump(&gauges.message_timeouts);
            bump(match as_dead_letter {
                Some(0) => &gauges.messages_dead,
                _ => &gauges.messages_redelivered,
            });
        }
        message.deliveries += 1;
        message.delivery = delivery;
        message.delivered = clock::now();
        message.is_acked = false;
        let deadline = message.next_deadline(&self.pattern);
        let ack = Ack { id, deadline };
        drop((outstanding, content));

        if self.checker.control.is_draining() || as_dead_letter.is_some() {
            return self.ack(delivery, ack);
        }
        if let Some(wait) = self.pattern.acks_after(id, attempt as u8) {
            let session = Rc::clone(self);
            let due = async move { session.ack(delivery, ack) };
            self.alarms.arm(clock::now() + wait, due);
        }
    }

    /// The broker says that a deadline has passed.
    fn judge_early(&self, deadline: Instant, what: impl FnOnce() -> String) {
        let early = nanos(deadline.saturating_duration_since(clock::now()));
        self.checker.check(Invariant::NothingEarly, early, || {
            format!("{}, {early} ns before its deadline", what())
        });
    }

    fn ack(&self, delivery: u64, ack: Ack) {
        // It may come too late: the message was delivered again, or is settled.
        if let Some(message) = self.outstanding.borrow_mut().get_mut(&ack.id) {
            message.is_acked |= message.delivery == delivery;
        }
        self.unanswered.borrow_mut().insert(delivery, ack);
        self.request(&Request::Ack { delivery });
    }

    fn acked(&self, delivery: u64, in_time: bool) {
        let Some(Ack { id, deadline }) = self.unanswered.borrow_mut().remove(&delivery) else {
            return self.judge(false, || format!("an ack of {delivery} was answered twice"));
        };
        if !in_time {
            return self.judge_early(deadline, || format!("an ack of message {id} was late"));
        }
        let message = self.outstanding.borrow_mut().remove(&id);
        let Some(message) = message.filter(|it| it.delivery == delivery) else {
            return self.checker.holds(Invariant::StaleCancels, false, || {
                format!("an ack of message {id} that came too late has settled it")
            });
        };
        self.checker.passed(Invariant::StaleCancels);
        // If it was long ago, the message should have come again.
        let deadline = message.delivered + self.pattern.ack_deadline;
        (self.checker).judge_overdue(deadline, || format!("the deadline of message {id}"));
        let gauges = &self.checker.stats.gauges;
        gauges.in_flight.fetch_sub(1, Ordering::Relaxed);
        if message.deliveries <= ATTEMPTS_MAX.into() {
            bump(&gauges.messages_acked);
        }
    }

    /// Cancels what waits, acks what is open, and waits for the broker to agree.
    async fn settle(&self) {
        self.alarms.cancel_all();
        let open: Vec<_> = {
            let outstanding = self.outstanding.borrow();
            let is_open = |it: &Outstanding| it.deliveries > 0 && !it.is_acked;
            let open = outstanding.iter().filter(|(_, it)| is_open(it));
            let ack = |(&id, it): (&u64, &Outstanding)| {
                let deadline = it.next_deadline(&self.pattern);
                (it.delivery, Ack { id, deadline })
            };
            open.map(ack).collect()
        };
        // A message not delivered yet is acked when it comes.
        for (delivery, ack) in open {
            self.ack(delivery, ack);
        }
        let remaining = || self.outstanding.borrow().len() + self.unanswered.borrow().len();
        let open = self.checker.until_none(remaining).await;
        self.checker.check(Invariant::Deliveries, open as u64, || {
            format!("{open} messages and acks were never settled")
        });
    }

    fn judge(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.checker.holds(Invariant::Deliveries, holds, detail);
    }
}

/// Above this a client publishes less: a machine that cannot keep up gets a smaller window, not an ever longer queue of
/// timers that are due.
const LAG_MAX: Duration = Duration::from_millis(50);

const PUBLISH_EVERY: Duration = Duration::from_millis(5);

/// A window fills in four seconds at the least: the start is no burst, and what a client publishes has a limit on the
/// fastest machine.
const BURSTS_PER_WINDOW: usize = 800;

/// With more to send a client publishes nothing.
const OUTBOX_BYTES_MAX: usize = 1 << 20;
