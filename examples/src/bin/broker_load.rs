//! A load generator for the example `broker`: keeps a number of messages in flight, and measures.
//!
//! ```console
//! $ cargo run --release -p examples --bin broker_load -- 127.0.0.1:7100 --in-flight 100000
//! ```
//!
//! One connection publishes and another consumes. The consumer holds back its acks until it has so
//! many messages; from then on each message that comes has the oldest one acknowledged. So the
//! broker has that many timers armed all the while, and each message arms one and disarms one.
//! When all have been counted, the rest is acknowledged as well, and each message must have come
//! once.
//!
//! # What is measured
//!
//! | row | from | to |
//! |---|---|---|
//! | `confirm` | publish | the broker has confirmed it |
//! | `deliver` | publish | the consumer has it |
//! | `ack` | the ack is sent | the broker has answered it |
//!
//! Without `--rate` messages go out as fast as the broker takes them, with a bounded number on
//! their way (`--window`), and the latencies are those of a saturated broker. With `--rate` each
//! message has a time at which it is due, whatever the broker does, and *all three* rows begin at
//! that time: a pause of the broker counts for all messages that were due meanwhile, also if they
//! were sent after it (this is what is known as correcting for coordinated omission). The row `ack`
//! then begins when the message was due whose coming had the ack sent.

#![forbid(unsafe_code)]

#[path = "broker/link.rs"]
mod link;
#[path = "broker/protocol.rs"]
mod protocol;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use clap::Parser;
use futures_lite::future::or;
use glommio::net::TcpStream;
use glommio::timer::{sleep_until, timeout};
use glommio::{GlommioError, LocalExecutorBuilder, Placement, executor, spawn_local};
use hdrhistogram::Histogram;
use link::{Duplex, Inbox, Outbox};
use protocol::{Reply, Request};

/// Measures a broker with many messages in flight.
#[derive(Clone, Debug, Parser)]
#[command(name = "broker_load")]
struct Options {
    /// Where the broker listens.
    broker: SocketAddr,

    /// Messages that are delivered and not acknowledged, all the while.
    #[arg(long, default_value_t = 1000)]
    in_flight: usize,

    /// Messages that are measured, when so many are in flight.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    messages: u64,

    /// Messages per second; without it, as fast as the broker takes them.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    rate: Option<u64>,

    /// Messages on their way, without `--rate`.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    window: u64,

    /// Bytes of a message.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(16..=65536))]
    bytes: u32,

    /// Topic. It should be empty: what others have left there is counted as foreign.
    #[arg(long, default_value = "load")]
    topic: String,

    /// CPU to run on.
    #[arg(long)]
    cpu: Option<usize>,

    /// Fails if the broker says nothing for so long.
    #[arg(long, default_value = "60s")]
    patience: humantime::Duration,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if options.topic.is_empty() || options.topic.len() > 200 {
        return Err("--topic needs a name of 1 to 200 bytes".into());
    }
    let placement = options.cpu.map_or(Placement::Unbound, Placement::Fixed);
    let executor = LocalExecutorBuilder::new(placement)
        .name("broker_load")
        .spawn(move || run(options))?;
    let (report, is_complete) = executor.join()??;
    print!("{report}");
    match is_complete {
        true => Ok(()),
        false => Err("not every message came once and was acknowledged in time".into()),
    }
}

async fn run(options: Options) -> io::Result<(String, bool)> {
    let load = Rc::new(Load::new(&options));
    let publisher = connect(options.broker).await?;
    let consumer = connect(options.broker).await?;

    // The consumer holds those in flight, and some are on their way to it.
    let credit = options.in_flight as u64 + options.window.max(CREDIT_AHEAD);
    let subscribe = Request::Subscribe {
        topic: &options.topic,
        group: "load",
        credit: u32::try_from(credit).unwrap_or(u32::MAX),
    };
    load.acks.push(|out| subscribe.append_to(out));

    let tasks = [
        spawn_local(talk(publisher, Rc::clone(&load), Side::Publisher)),
        spawn_local(talk(consumer, Rc::clone(&load), Side::Consumer)),
    ];
    let watched = async {
        let mut before = load.replies.get();
        loop {
            match timeout(*options.patience, async {
                load.done().await;
                Ok(())
            })
            .await
            {
                Ok(()) => return Ok(()),
                Err(GlommioError::TimedOut(_)) if load.replies.get() != before => {
                    before = load.replies.get();
                }
                Err(_) => return Err(io::Error::other(load.state())),
            }
        }
    };
    let publishing = async {
        load.publish(&options).await;
        // The rest is up to the other tasks.
        std::future::pending().await
    };
    let failing = async {
        let [publisher, consumer] = tasks;
        or(publisher, consumer).await
    };
    or(watched, or(failing, publishing)).await?;
    Ok((load.report(&options), load.is_complete()))
}

async fn connect(broker: SocketAddr) -> io::Result<Duplex> {
    let stream = TcpStream::connect(broker).await?;
    stream.set_nodelay(true)?;
    Ok(Duplex::new(stream))
}

#[derive(Clone, Copy)]
enum Side {
    Publisher,
    Consumer,
}

/// Sends what is in the outbox of one side, and handles the replies.
async fn talk(link: Duplex, load: Rc<Load>, side: Side) -> io::Result<()> {
    let receiving = async {
        let mut inbox = Inbox::default();
        while inbox.receive(&link).await? {
            let now = load.now();
            while let Some(frame) = inbox.next_frame()? {
                load.handle(Reply::parse(frame)?, now);
            }
            load.progress();
            executor().yield_now().await;
        }
        Err(io::Error::other("the broker has closed the connection"))
    };
    let outbox = match side {
        Side::Publisher => &load.publishes,
        Side::Consumer => &load.acks,
    };
    let sending = async {
        loop {
            outbox.send(&link).await?;
        }
    };
    or(receiving, sending).await
}

/// The state of a run, which its tasks share. Times are nanoseconds since `epoch`.
struct Load {
    epoch: Instant,
    in_flight: usize,
    /// Those that bring the number in flight up, and those that are measured.
    messages: u64,
    /// Whether latencies count from when a message was due.
    has_rate: bool,
    publishes: Outbox,
    acks: Outbox,
    published: Cell<u64>,
    confirmed: Cell<u64>,
    refused: Cell<u64>,
    delivered: Cell<u64>,
    acked: Cell<u64>,
    late_acks: Cell<u64>,
    twice: Cell<u64>,
    foreign: Cell<u64>,
    /// Of any kind; shows whether the broker is alive.
    replies: Cell<u64>,
    /// When the measured part began and ended.
    begin: Cell<u64>,
    end: Cell<u64>,
    /// Since when each publish waits for its confirmation; zero if it is not measured.
    unconfirmed: RefCell<VecDeque<u64>>,
    /// Likewise of acks.
    unanswered: RefCell<VecDeque<u64>>,
    held: RefCell<VecDeque<u64>>,
    has_come: RefCell<Vec<bool>>,
    latencies: RefCell<[Histogram<u64>; 3]>,
    /// The publisher, and the task that waits for the end.
    waiting: RefCell<Vec<Waker>>,
}

impl Load {
    fn new(options: &Options) -> Load {
        let messages = options.in_flight as u64 + options.messages;
        // 3 digits, up to an hour.
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3);
        let histogram = histogram.expect("these bounds are valid");
        Load {
            epoch: Instant::now(),
            in_flight: options.in_flight,
            messages,
            has_rate: options.rate.is_some(),
            publishes: Outbox::default(),
            acks: Outbox::default(),
            published: Cell::default(),
            confirmed: Cell::default(),
            refused: Cell::default(),
            delivered: Cell::default(),
            acked: Cell::default(),
            late_acks: Cell::default(),
            twice: Cell::default(),
            foreign: Cell::default(),
            replies: Cell::default(),
            begin: Cell::default(),
            end: Cell::default(),
            unconfirmed: RefCell::default(),
            unanswered: RefCell::default(),
            held: RefCell::default(),
            has_come: RefCell::new(vec![false; messages as usize]),
            latencies: RefCell::new([histogram.clone(), histogram.clone(), histogram]),
            waiting: RefCell::default(),
        }
    }

    fn now(&self) -> u64 {
        // Zero stands for what is not measured.
        (self.epoch.elapsed().as_nanos() as u64).max(1)
    }

    async fn publish(&self, options: &Options) {
        let mut message = vec![0; options.bytes as usize];
        let fill = self.in_flight as u64;
        while self.published.get() < fill && self.refused.get() == 0 {
            self.may_publish(options.window).await;
            self.send(&mut message, &options.topic, 0);
        }
        self.until(|| self.delivered.get() >= fill && self.confirmed.get() >= fill)
            .await;
        let begin = self.now();
        self.begin.set(begin);
        for number in 0..options.messages {
            if self.refused.get() > 0 {
                return;
            }
            let due = match options.rate {
                None => {
                    self.may_publish(options.window).await;
                    self.now()
                }
                Some(rate) => {
                    let since = u128::from(number) * 1_000_000_000 / u128::from(rate);
                    let due = begin + since as u64;
                    if due > self.now() {
                        sleep_until(self.epoch + Duration::from_nanos(due)).await;
                    } else {
                        // It is behind, and catches up.
                        if number.is_multiple_of(32) {
                            executor().yield_now().await;
                        }
                        self.publishes.fewer_than(BEHIND_BYTES_MAX).await;
                    }
                    due
                }
            };
            self.send(&mut message, &options.topic, due);
        }
    }

    /// Publishes a message that holds when it was due, and its number.
    fn send(&self, message: &mut [u8], topic: &str, due: u64) {
        let number = self.published.get();
        message[..8].copy_from_slice(&due.to_le_bytes());
        message[8..16].copy_from_slice(&number.to_le_bytes());
        self.published.set(number + 1);
        self.unconfirmed.borrow_mut().push_back(due);
        let request = Request::Publish {
            topic,
            number,
            payload: message,
        };
        self.publishes.push(|out| request.append_to(out));
    }

    async fn may_publish(&self, window: u64) {
        let slowest = || self.delivered.get().min(self.confirmed.get());
        self.until(|| self.published.get() < slowest() + window)
            .await;
    }

    async fn done(&self) {
        self.until(|| {
            self.acked.get() + self.late_acks.get() >= self.messages
                && self.confirmed.get() >= self.messages
        })
        .await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        poll_fn(|cx| match holds() || self.refused.get() > 0 {
            true => Poll::Ready(()),
            false => {
                let mut waiting = self.waiting.borrow_mut();
                if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    waiting.push(cx.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }

    fn progress(&self) {
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    fn handle(&self, reply: Reply<'_>, now: u64) {
        count(&self.replies);
        match reply {
            Reply::Confirm { .. } => {
                count(&self.confirmed);
                let since = self.unconfirmed.borrow_mut().pop_front();
                self.record(Row::Confirm, since, now);
            }
            Reply::Refuse { .. } => count(&self.refused),
            Reply::Deliver {
                delivery, payload, ..
            } => self.receive(delivery, payload, now),
            Reply::Acked { in_time, .. } => {
                count(match in_time {
                    true => &self.acked,
                    false => &self.late_acks,
                });
                let since = self.unanswered.borrow_mut().pop_front();
                self.record(Row::Ack, since, now);
            }
        }
    }

    fn receive(&self, delivery: u64, payload: &[u8], now: u64) {
        let number = |bytes: &[u8]| bytes.first_chunk().map(|it| u64::from_le_bytes(*it));
        let due = number(payload).unwrap_or_default();
        let index = payload.get(8..).and_then(number);
        let mut has_come = self.has_come.borrow_mut();
        match index.and_then(|index| has_come.get_mut(index as usize)) {
            None => {
                count(&self.foreign);
                return;
            }
            // Its ack was late; it needs another one, and counts no more.
            Some(true) => count(&self.twice),
            Some(come) => {
                *come = true;
                count(&self.delivered);
                self.record(Row::Deliver, Some(due), now);
            }
        }
        self.held.borrow_mut().push_back(delivery);
        if self.held.borrow().len() > self.in_flight {
            let since = match (due, self.has_rate) {
                (0, _) => 0,
                (due, true) => due,
                (_, false) => now,
            };
            self.ack(since);
        }
        if self.delivered.get() == self.messages {
            self.end.set(now);
            while !self.held.borrow().is_empty() {
                self.ack(0);
            }
        }
    }

    fn ack(&self, since: u64) {
        if let Some(delivery) = self.held.borrow_mut().pop_front() {
            self.unanswered.borrow_mut().push_back(since);
            self.acks
                .push(|out| Request::Ack { delivery }.append_to(out));
        }
    }

    fn record(&self, row: Row, since: Option<u64>, now: u64) {
        if let Some(since) = since.filter(|&since| since > 0) {
            let latency_ns = now.saturating_sub(since);
            self.latencies.borrow_mut()[row as usize].saturating_record(latency_ns);
        }
    }

    fn is_complete(&self) -> bool {
        let wrong = [&self.refused, &self.late_acks, &self.twice, &self.foreign];
        self.acked.get() == self.messages && wrong.iter().all(|count| count.get() == 0)
    }

    fn state(&self) -> String {
        format!(
            "of {} messages {} were published, {} confirmed, {} refused, {} delivered, {} delivered twice, {} foreign, {} acknowledged in time, {} late",
            self.messages,
            self.published.get(),
            self.confirmed.get(),
            self.refused.get(),
            self.delivered.get(),
            self.twice.get(),
            self.foreign.get(),
            self.acked.get(),
            self.late_acks.get(),
        )
    }

    fn report(&self, options: &Options) -> String {
        let seconds = self.end.get().saturating_sub(self.begin.get()) as f64 / 1e9;
        let per_second = options.messages as f64 / seconds;
        let mut report = format!(
            "{} in flight: {} messages of {} bytes in {seconds:.2} s, {per_second:.0} messages/s{}\n",
            options.in_flight,
            options.messages,
            options.bytes,
            match options.rate {
                Some(rate) => format!(", {rate} wanted"),
                None => String::new(),
            },
        );
        report += "latency in us        p50        p99      p99.9        max\n";
        for (name, row) in ["confirm", "deliver", "ack"]
            .iter()
            .zip(&*self.latencies.borrow())
        {
            let us = |quantile| row.value_at_quantile(quantile) as f64 / 1e3;
            report += &format!(
                "{name:<14}{:>10.0} {:>10.0} {:>10.0} {:>10.0}\n",
                us(0.5),
                us(0.99),
                us(0.999),
                row.max() as f64 / 1e3,
            );
        }
        report + &self.state() + "\n"
    }
}

#[derive(Clone, Copy)]
enum Row {
    Confirm,
    Deliver,
    Ack,
}

fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

/// Deliveries on their way while there is a rate.
const CREDIT_AHEAD: u64 = 100_000;
/// Beyond these, what is due waits in the publisher instead of in its outbox; its time counts all
/// the same.
const BEHIND_BYTES_MAX: usize = 16 << 20;
