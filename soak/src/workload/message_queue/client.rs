//! A client executor: several connections, each publishing messages and acting on their deliveries.
//!
//! A reply waits for its moment in an alarm. When the run drains, those that still wait are cancelled and everything is
//! acked at once, so that a run ends within a moment although deadlines reach a minute ahead.

use glommio::channels::watch::SharedReceiver;

use super::link::{Frame, Kind, Link};
use super::script::{ATTEMPTS_MAX, Pattern, Reply, Script};
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
    let seed = pattern.seed() ^ first_connection as u64;
    let timeouts = spawn_local(timeouts::run(Rc::clone(&checker), seed));
    let connections = first_connection..first_connection + CONNECTIONS_PER_CLIENT;
    let sessions = connections.map(|connection| {
        let first_id = (connection as u64) << 40;
        let session = Session::new(&checker, pattern, first_id);
        spawn_local(session.converse(broker.clone(), window))
    });
    for session in sessions.collect::<Vec<_>>() {
        session.await;
    }
    timeouts.await;
}

/// Where the broker listens, once it does.
async fn address(
    mut broker: SharedReceiver<Option<SocketAddr>>,
) -> glommio::Result<SocketAddr, ()> {
    loop {
        if let Some(address) = broker.get() {
            return Ok(address);
        }
        broker.changed().await?;
    }
}

struct Session {
    checker: Rc<Checker>,
    pattern: Pattern,
    next_id: Cell<u64>,
    /// The worst since the last publication.
    lag: Cell<Duration>,
    outstanding: RefCell<HashMap<u64, Outstanding>>,
    /// Replies that wait for their moment.
    alarms: Rc<Alarms>,
    /// What the payload at hand should be.
    content: RefCell<Vec<u8>>,
}

/// A message published and not settled.
struct Outstanding {
    script: Script,
    attempts: u8,
    deadline_ns: u64,
    /// The deadline may have been moved since it was named.
    is_extended: bool,
    /// One bit for each attempt that was acked.
    acked: u8,
}

impl Session {
    fn new(checker: &Rc<Checker>, pattern: Pattern, first_id: u64) -> Rc<Self> {
        Rc::new(Session {
            checker: Rc::clone(checker),
            pattern,
            next_id: Cell::new(first_id),
            lag: Cell::default(),
            outstanding: RefCell::default(),
            alarms: Alarms::new(checker),
            content: RefCell::default(),
        })
    }

    async fn converse(self: Rc<Self>, broker: SharedReceiver<Option<SocketAddr>>, window: usize) {
        let connected = async {
            let stream = TcpStream::connect(address(broker).await?).await?;
            Link::start(stream, &self.checker)
        };
        let (link, writer) = match connected.await {
            Ok(started) => started,
            Err(error) => {
                return self
                    .checker
                    .ended(Invariant::Deliveries, "connect", Err(error));
            }
        };
        let (session, reading) = (Rc::clone(&self), Rc::clone(&link));
        let reader = spawn_local(async move {
            let handle = |frame: Frame<'_>| session.handle(&reading, frame);
            reading.receive(handle).await
        });
        self.publish_until_drained(&link, window).await;
        self.settle(&link).await;
        link.close();
        self.checker
            .ended(Invariant::Deliveries, "client's write", writer.await);
        self.checker
            .ended(Invariant::Deliveries, "client's read", reader.await);
    }

    async fn publish_until_drained(&self, link: &Link, window: usize) {
        let burst = (window / BURSTS_PER_WINDOW).max(1);
        let mut allowed = burst;
        while !self.checker.control.is_draining() {
            link.room().await;
            allowed = if self.lag.take() > LAG_MAX {
                (allowed - allowed / 8).max(burst)
            } else {
                (allowed + burst).min(window)
            };
            let free = allowed.saturating_sub(self.outstanding.borrow().len());
            for _ in 0..free.min(burst) {
                self.publish(link);
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

    fn publish(&self, link: &Link) {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let script = self.pattern.script(id);
        let mut content = self.content.borrow_mut();
        script.payload(&mut content);
        link.send(&Frame {
            ns: nanos(script.allowance),
            payload: &content,
            ..Frame::new(Kind::Publish, id, 0)
        });
        let outstanding = Outstanding {
            script,
            attempts: 0,
            deadline_ns: 0,
            is_extended: false,
            acked: 0,
        };
        self.outstanding.borrow_mut().insert(id, outstanding);
        bump(&self.checker.stats.gauges.messages_published);
    }

    fn handle(self: &Rc<Self>, link: &Rc<Link>, frame: Frame<'_>) {
        match frame.kind {
            Kind::Deliver => self.delivered(link, frame),
            Kind::Settled | Kind::Dead => self.settled(frame),
            _ => self.judge(false, || "the broker spoke as a client".to_owned()),
        }
    }

    fn delivered(self: &Rc<Self>, link: &Rc<Link>, frame: Frame<'_>) {
        let Frame { id, attempt, .. } = frame;
        let mut outstanding = self.outstanding.borrow_mut();
        let Some(message) = outstanding.get_mut(&id) else {
            return self.judge(false, || format!("message {id} came after it was settled"));
        };
        let mut content = self.content.borrow_mut();
        message.script.payload(&mut content);
        let expected = message.attempts + 1;
        let is_right = attempt == expected && *content == frame.payload;
        self.judge(is_right, || {
            format!(
                "message {id}: delivery {attempt} came as number {expected}, or with other content"
            )
        });
        if attempt > 1 {
            // Seen from outside the broker: it may not redeliver before the deadline it named.
            let now_ns = self.checker.control.since_start_ns(clock::now());
            let early = message.deadline_ns.saturating_sub(now_ns);
            self.checker.check(Invariant::NothingEarly, early, || {
                format!("message {id} was redelivered {early} ns early")
            });
            if !message.is_extended {
                let late = now_ns.saturating_sub(message.deadline_ns);
                self.lags_by(Duration::from_nanos(late));
            }
        }
        message.is_extended = false;
        message.attempts = attempt;
        message.deadline_ns = frame.ns;
        let reply = message.script.reply(attempt);
        drop((outstanding, content));

        if self.checker.control.is_draining() {
            return self.ack(link, id, attempt);
        }
        let (session, link) = (Rc::clone(self), Rc::clone(link));
        match reply {
            Reply::Ignore => {}
            Reply::Ack { after } => self.later(after, move || session.ack(&link, id, attempt)),
            Reply::ExtendThenAck {
                extend_after,
                ack_after,
            } => self.later(extend_after, move || {
                session.extend(link, id, attempt, ack_after)
            }),
        }
    }

    fn settled(&self, frame: Frame<'_>) {
        let Frame { id, attempt, .. } = frame;
        let Some(message) = self.outstanding.borrow_mut().remove(&id) else {
            return self.judge(false, || format!("message {id} was settled twice"));
        };
        let is_legal = match frame.kind {
            Kind::Dead => attempt == ATTEMPTS_MAX,
            _ => message.acked >> attempt & 1 == 1,
        };
        self.judge(is_legal && attempt == message.attempts, || {
            let seen = message.attempts;
            format!("message {id}: {frame:?} after {seen} deliveries")
        });
    }

    /// Does what is to be done after a while.
    fn later(&self, delay: Duration, due: impl FnOnce() + 'static) {
        self.alarms.arm(clock::now() + delay, async move { due() });
    }

    fn extend(self: Rc<Self>, link: Rc<Link>, id: u64, attempt: u8, ack_after: Duration) {
        if let Some(message) = self.outstanding.borrow_mut().get_mut(&id) {
            message.is_extended = true;
        }
        link.send(&Frame::new(Kind::Extend, id, attempt));
        let session = Rc::clone(&self);
        self.later(ack_after, move || session.ack(&link, id, attempt));
    }

    fn ack(&self, link: &Link, id: u64, attempt: u8) {
        if let Some(message) = self.outstanding.borrow_mut().get_mut(&id) {
            message.acked |= 1 << attempt;
        }
        link.send(&Frame::new(Kind::Ack, id, attempt));
    }

    /// Cancels what waits, acks what is open, and waits for the broker to agree.
    async fn settle(&self, link: &Link) {
        self.alarms.cancel_all();
        let open: Vec<_> = {
            let outstanding = self.outstanding.borrow();
            let open = outstanding.iter().map(|(&id, it)| (id, it.attempts));
            open.collect()
        };
        // A message not delivered yet is acked when it comes.
        for (id, attempts) in open.into_iter().filter(|&(_, attempts)| attempts > 0) {
            self.ack(link, id, attempts);
        }
        let remaining = || self.outstanding.borrow().len();
        let open = self.checker.until_none(remaining).await;
        self.checker.check(Invariant::Deliveries, open as u64, || {
            format!("{open} messages were never settled")
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

const _: () = assert!(ATTEMPTS_MAX < 8, "an attempt is a bit of a byte");
