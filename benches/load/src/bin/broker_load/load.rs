//! What is published, delivered and acknowledged, and how long it took.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use examples::broker::link::Outbox;
use glommio::executor;
use glommio::timer::sleep_until;
use hdrhistogram::Histogram;

use crate::wire::{Delivery, Wire};
use crate::{Options, process};

/// The state of a run, which its tasks share. Times are nanoseconds since `epoch`.
pub struct Load {
    epoch: Instant,
    in_flight: usize,
    /// Those that bring the number in flight up, and those that are measured.
    messages: u64,
    /// Whether latencies count from when a message was due.
    has_rate: bool,
    pub wire: Wire,
    pub publishes: Rc<Outbox>,
    pub acks: Rc<Outbox>,
    /// The broker, if what it uses is to be measured.
    process: Option<u32>,
    seen: Seen,
    /// Since when each publish waits for its confirmation; zero if it is not measured.
    unconfirmed: RefCell<VecDeque<u64>>,
    /// Likewise of acks.
    unanswered: RefCell<VecDeque<u64>>,
    held: RefCell<VecDeque<Delivery>>,
    has_come: RefCell<Vec<bool>>,
    latencies: RefCell<[Histogram<u64>; 3]>,
    /// The publisher, and the task that waits for the end.
    waiting: RefCell<Vec<Waker>>,
}

/// What has happened so far.
#[derive(Default)]
struct Seen {
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
    /// What the broker had used of its processor at these two moments.
    cpu_begin_ns: Cell<u64>,
    cpu_end_ns: Cell<u64>,
    memory_peak_kib: Cell<u64>,
}

impl Load {
    pub fn new(options: &Options) -> Load {
        let messages = options.in_flight as u64 + options.messages;
        // 3 digits, up to an hour.
        let histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3);
        let histogram = histogram.expect("these bounds are valid");
        Load {
            epoch: Instant::now(),
            in_flight: options.in_flight,
            messages,
            has_rate: options.rate.is_some(),
            wire: options.wire(),
            publishes: Rc::default(),
            acks: Rc::default(),
            process: options.process,
            seen: Seen::default(),
            unconfirmed: RefCell::default(),
            unanswered: RefCell::default(),
            held: RefCell::default(),
            has_come: RefCell::new(vec![false; messages as usize]),
            latencies: RefCell::new([histogram.clone(), histogram.clone(), histogram]),
            waiting: RefCell::default(),
        }
    }

    /// How often the broker has said something.
    pub fn replies(&self) -> u64 {
        self.seen.replies.get()
    }

    pub fn now(&self) -> u64 {
        // Zero stands for what is not measured.
        (self.epoch.elapsed().as_nanos() as u64).max(1)
    }

    pub async fn publish(&self, options: &Options) {
        let mut message = vec![0; options.bytes as usize];
        let fill = self.in_flight as u64;
        while self.seen.published.get() < fill && self.seen.refused.get() == 0 {
            self.may_publish(options.window).await;
            self.send(&mut message, 0);
        }
        self.until(|| self.seen.delivered.get() >= fill && self.seen.confirmed.get() >= fill)
            .await;
        self.seen.cpu_begin_ns.set(self.cpu_ns());
        let begin = self.now();
        self.seen.begin.set(begin);
        for number in 0..options.messages {
            if self.seen.refused.get() > 0 {
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
            self.send(&mut message, due);
        }
    }

    /// Publishes a message that holds when it was due, and its number.
    fn send(&self, message: &mut [u8], due: u64) {
        let number = self.seen.published.get();
        message[..8].copy_from_slice(&due.to_le_bytes());
        message[8..16].copy_from_slice(&number.to_le_bytes());
        self.seen.published.set(number + 1);
        self.unconfirmed.borrow_mut().push_back(due);
        self.publishes
            .push(|out| self.wire.append_publish(out, number, message));
    }

    async fn may_publish(&self, window: u64) {
        let slowest = || self.seen.delivered.get().min(self.seen.confirmed.get());
        self.until(|| self.seen.published.get() < slowest() + window)
            .await;
    }

    pub async fn done(&self) {
        self.until(|| {
            self.seen.acked.get() + self.seen.late_acks.get() >= self.messages
                && self.seen.confirmed.get() >= self.messages
        })
        .await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        poll_fn(|cx| {
            if holds() || self.seen.refused.get() > 0 {
                Poll::Ready(())
            } else {
                let mut waiting = self.waiting.borrow_mut();
                if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    waiting.push(cx.waker().clone());
                }
                Poll::Pending
            }
        })
        .await
    }

    /// Looks again at what is waited for.
    pub fn progress(&self) {
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// The broker has the message that was published first of those that it has not confirmed.
    pub fn confirmed(&self, now: u64) {
        count(&self.seen.replies);
        count(&self.seen.confirmed);
        let since = self.unconfirmed.borrow_mut().pop_front();
        self.record(Row::Confirm, since, now);
    }

    /// The broker does not take a message.
    pub fn refused(&self) {
        count(&self.seen.replies);
        count(&self.seen.refused);
    }

    /// The broker has answered the oldest ack.
    pub fn acked(&self, in_time: bool, now: u64) {
        count(&self.seen.replies);
        count(if in_time {
            &self.seen.acked
        } else {
            &self.seen.late_acks
        });
        let since = self.unanswered.borrow_mut().pop_front();
        self.record(Row::Ack, since, now);
    }

    /// A message has come.
    pub fn delivered(&self, delivery: Delivery, payload: &[u8], now: u64) {
        count(&self.seen.replies);
        let number = |bytes: &[u8]| bytes.first_chunk().map(|it| u64::from_le_bytes(*it));
        let due = number(payload).unwrap_or_default();
        let index = payload.get(8..).and_then(number);
        let mut has_come = self.has_come.borrow_mut();
        match index.and_then(|index| has_come.get_mut(index as usize)) {
            None => {
                count(&self.seen.foreign);
                return;
            }
            // Its ack was late; it needs another one, and counts no more.
            Some(true) => count(&self.seen.twice),
            Some(come) => {
                *come = true;
                count(&self.seen.delivered);
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
        if self.seen.delivered.get() == self.messages {
            self.seen.end.set(now);
            self.seen.cpu_end_ns.set(self.cpu_ns());
            let peak = self.process.map(process::memory_peak_kib);
            self.seen
                .memory_peak_kib
                .set(peak.and_then(Result::ok).unwrap_or(0));
            while !self.held.borrow().is_empty() {
                self.ack(0);
            }
        }
    }

    fn ack(&self, since: u64) {
        if let Some(delivery) = self.held.borrow_mut().pop_front() {
            self.unanswered.borrow_mut().push_back(since);
            self.acks.push(|out| self.wire.append_ack(out, delivery));
        }
    }

    fn record(&self, row: Row, since: Option<u64>, now: u64) {
        if let Some(since) = since.filter(|&since| since > 0) {
            let latency_ns = now.saturating_sub(since);
            self.latencies.borrow_mut()[row as usize].saturating_record(latency_ns);
        }
    }

    pub fn is_complete(&self) -> bool {
        let wrong = [
            &self.seen.refused,
            &self.seen.late_acks,
            &self.seen.twice,
            &self.seen.foreign,
        ];
        self.seen.acked.get() == self.messages && wrong.iter().all(|count| count.get() == 0)
    }

    pub fn state(&self) -> String {
        format!(
            "of {} messages {} were published, {} confirmed, {} refused, {} delivered, {} delivered twice, {} foreign, {} acknowledged in time, {} late",
            self.messages,
            self.seen.published.get(),
            self.seen.confirmed.get(),
            self.seen.refused.get(),
            self.seen.delivered.get(),
            self.seen.twice.get(),
            self.seen.foreign.get(),
            self.seen.acked.get(),
            self.seen.late_acks.get(),
        )
    }

    pub fn report(&self, options: &Options) -> String {
        let seconds = self.seen.end.get().saturating_sub(self.seen.begin.get()) as f64 / 1e9;
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
        if self.process.is_some() {
            let cpu_ns = self
                .seen
                .cpu_end_ns
                .get()
                .saturating_sub(self.seen.cpu_begin_ns.get());
            report += &format!(
                "the broker used {:.3} s of CPU per million messages, and {:.1} MiB at most\n",
                // Nanoseconds for one are milliseconds for a million.
                cpu_ns as f64 / options.messages as f64 / 1e3,
                self.seen.memory_peak_kib.get() as f64 / 1024.0,
            );
        }
        report + &self.state() + "\n"
    }

    /// Of the broker, so far. That it can be read was seen before the load began.
    fn cpu_ns(&self) -> u64 {
        let read = self.process.map(process::cpu_ns);
        read.and_then(Result::ok).unwrap_or(0)
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

/// Beyond these, what is due waits in the publisher instead of in its outbox; its time counts all
/// the same.
const BEHIND_BYTES_MAX: usize = 16 << 20;
