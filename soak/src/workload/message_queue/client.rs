//! A client executor: several connections, each publishing messages and acting on their deliveries.
//!
//! A reply waits for its moment in an alarm. When the run drains, those that still wait are cancelled
//! and everything is acked at once, so that a run ends within a moment although deadlines reach 30
//! seconds ahead.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use glommio::net::TcpStream;
use glommio::spawn_local;
use glommio::timer::sleep;

use super::link::{Link, judge_end};
use super::protocol::{Frame, allowance_us};
use super::script::{ATTEMPTS_MAX, Pattern, Reply, Script};
use super::timeouts;
use crate::check::checker::Checker;
use crate::check::executor_stats::bump;
use crate::check::invariants::Invariant;
use crate::clock;
use crate::map::HashMap;
use crate::workload::alarms::Alarms;
use crate::workload::bound::Bound;

pub(super) const CONNECTIONS_PER_CLIENT: usize = 4;

/// Runs the connections numbered from `first_connection`, each with up to `window` messages.
pub(crate) async fn run(
    checker: Rc<Checker>,
    pattern: Pattern,
    broker: Bound<SocketAddr>,
    first_connection: usize,
    window: usize,
) {
    checker.spawn_sweeper();
    let timeouts = spawn_local(timeouts::run(
        Rc::clone(&checker),
        pattern.seed() ^ first_connection as u64,
    ));
    let sessions: Vec<_> = (first_connection..first_connection + CONNECTIONS_PER_CLIENT)
        .map(|connection| {
            spawn_local(converse(
                Rc::clone(&checker),
                pattern,
                broker.clone(),
                connection,
                window,
            ))
        })
        .collect();
    for session in sessions {
        session.await;
    }
    timeouts.await;
    checker.settle().await;
}

async fn converse(
    checker: Rc<Checker>,
    pattern: Pattern,
    broker: Bound<SocketAddr>,
    connection: usize,
    window: usize,
) {
    let connected = async {
        let stream = TcpStream::connect(broker.wait().await?).await?;
        Link::start(stream, &checker)
    };
    let connected = connected.await;
    let (link, writer) = match connected {
        Ok(started) => started,
        Err(error) => return judge_end(&checker, "connect", Err(error.into())),
    };
    let session = Rc::new(Session {
        checker: Rc::clone(&checker),
        link: Rc::clone(&link),
        pattern,
        first_id: (connection as u64) << 40,
        published: Cell::new(0),
        lag: Cell::default(),
        outstanding: RefCell::default(),
        alarms: Alarms::new(&checker),
        content: RefCell::default(),
    });
    let reader = spawn_local({
        let session = Rc::clone(&session);
        async move { session.link.receive(|frame| session.handle(frame)).await }
    });
    session.publish_until_drained(window).await;
    session.settle().await;
    link.close();
    judge_end(&checker, "client's write", writer.await);
    judge_end(&checker, "client's read", reader.await);
}

struct Session {
    checker: Rc<Checker>,
    link: Rc<Link>,
    pattern: Pattern,
    first_id: u64,
    published: Cell<u64>,
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

#[derive(Clone, Copy)]
enum Step {
    Ack {
        id: u64,
        attempt: u8,
    },
    Extend {
        id: u64,
        attempt: u8,
        ack_after: Duration,
    },
}

impl Session {
    async fn publish_until_drained(&self, window: usize) {
        let burst = (window / BURSTS_PER_WINDOW).max(1);
        let mut allowed = burst;
        let mut spoke = clock::now();
        while !self.checker.control.is_draining() {
            self.link.room().await;
            allowed = if self.lag.take() > LAG_MAX {
                (allowed - allowed / 8).max(burst)
            } else {
                (allowed + burst).min(window)
            };
            let free = allowed.saturating_sub(self.outstanding.borrow().len());
            for _ in 0..free.min(burst) {
                self.publish();
            }
            if free > 0 {
                spoke = clock::now();
            } else if clock::since(spoke) > PING_AFTER {
                self.link.send(&Frame::Ping);
                spoke = clock::now();
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
        let id = self.first_id + self.published.get();
        self.published.set(self.published.get() + 1);
        let script = self.pattern.script(id);
        let mut content = self.content.borrow_mut();
        script.payload(&mut content);
        self.link.send(&Frame::Publish {
            id,
            allowance_us: allowance_us(script.allowance),
            payload: &content,
        });
        let outstanding = Outstanding {
            script,
            attempts: 0,
            deadline_ns: 0,
            is_extended: false,
            acked: 0,
        };
        self.outstanding.borrow_mut().insert(id, outstanding);
        bump(&self.checker.stats.gauges.published);
    }

    fn handle(self: &Rc<Self>, frame: Frame<'_>) {
        match frame {
            Frame::Deliver {
                id,
                attempt,
                deadline_ns,
                payload,
            } => {
                self.delivered(id, attempt, deadline_ns, payload);
            }
            Frame::Settled {
                id,
                attempts,
                is_dead,
            } => self.settled(id, attempts, is_dead),
            Frame::Publish { .. } | Frame::Ack { .. } | Frame::Extend { .. } | Frame::Ping => {
                self.judge(false, || "the broker spoke as a client".to_owned());
            }
        }
    }

    fn delivered(self: &Rc<Self>, id: u64, attempt: u8, deadline_ns: u64, payload: &[u8]) {
        let mut outstanding = self.outstanding.borrow_mut();
        let Some(message) = outstanding.get_mut(&id) else {
            return self.judge(false, || {
                format!("message {id} was delivered after it was settled")
            });
        };
        let mut content = self.content.borrow_mut();
        message.script.payload(&mut content);
        let expected = message.attempts + 1;
        self.judge(attempt == expected && *content == payload, || {
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
                self.lags_by(Duration::from_nanos(
                    now_ns.saturating_sub(message.deadline_ns),
                ));
            }
        }
        message.is_extended = false;
        message.attempts = attempt;
        message.deadline_ns = deadline_ns;
        let reply = message.script.reply(attempt);
        drop((outstanding, content));

        if self.checker.control.is_draining() {
            return self.ack(id, attempt);
        }
        match reply {
            Reply::Ignore => {}
            Reply::Ack { after } | Reply::AckLate { after } => {
                self.later(after, Step::Ack { id, attempt })
            }
            Reply::ExtendThenAck {
                extend_after,
                ack_after,
            } => {
                self.later(
                    extend_after,
                    Step::Extend {
                        id,
                        attempt,
                        ack_after,
                    },
                );
            }
        }
    }

    fn settled(&self, id: u64, attempts: u8, is_dead: bool) {
        let Some(message) = self.outstanding.borrow_mut().remove(&id) else {
            return self.judge(false, || format!("message {id} was settled twice"));
        };
        let is_legal = if is_dead {
            attempts == ATTEMPTS_MAX
        } else {
            message.acked >> attempts & 1 == 1
        };
        self.judge(is_legal && attempts == message.attempts, || {
            format!(
                "message {id}: settled after {attempts} deliveries, dead: {is_dead}; {} were seen",
                message.attempts
            )
        });
    }

    /// Takes a step after a while.
    fn later(self: &Rc<Self>, delay: Duration, step: Step) {
        let session = Rc::clone(self);
        let due = async move { session.due(step) };
        self.alarms.arm(clock::now() + delay, due);
    }

    fn due(self: &Rc<Self>, step: Step) {
        match step {
            Step::Ack { id, attempt } => self.ack(id, attempt),
            Step::Extend {
                id,
                attempt,
                ack_after,
            } => {
                if let Some(message) = self.outstanding.borrow_mut().get_mut(&id) {
                    message.is_extended = true;
                }
                self.link.send(&Frame::Extend { id, attempt });
                self.later(ack_after, Step::Ack { id, attempt });
            }
        }
    }

    fn ack(&self, id: u64, attempt: u8) {
        if let Some(message) = self.outstanding.borrow_mut().get_mut(&id) {
            message.acked |= 1 << attempt;
        }
        self.link.send(&Frame::Ack { id, attempt });
    }

    /// Cancels what waits, acks what is open, and waits for the broker to agree.
    async fn settle(&self) {
        self.alarms.cancel_all();
        let open: Vec<_> = {
            let outstanding = self.outstanding.borrow();
            outstanding
                .iter()
                .map(|(&id, message)| (id, message.attempts))
                .collect()
        };
        // A message not delivered yet is acked when it comes.
        for (id, attempts) in open.into_iter().filter(|&(_, attempts)| attempts > 0) {
            self.ack(id, attempts);
        }

        let (mut open, mut since) = (self.outstanding.borrow().len(), clock::now());
        while open > 0 && clock::since(since) < self.checker.control.patience() {
            sleep(Duration::from_millis(2)).await;
            let still_open = self.outstanding.borrow().len();
            if still_open != open {
                (open, since) = (still_open, clock::now());
            }
        }
        self.checker.check(Invariant::Deliveries, open as u64, || {
            format!("{open} messages were never settled")
        });
    }

    fn judge(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.checker.holds(Invariant::Deliveries, holds, detail);
    }
}

/// Above this a client publishes less: a machine that cannot keep up gets a smaller window, not an
/// ever longer queue of timers that are due.
const LAG_MAX: Duration = Duration::from_millis(50);

const PUBLISH_EVERY: Duration = Duration::from_millis(5);
const PING_AFTER: Duration = Duration::from_millis(500);

/// A window fills in four seconds at the least: the start is no burst, and what a client publishes
/// has a limit on the fastest machine.
const BURSTS_PER_WINDOW: usize = 800;

const _: () = assert!(ATTEMPTS_MAX < 8, "an attempt is a bit of a byte");
