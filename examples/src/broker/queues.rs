//! Topics, their groups of consumers, and the messages in flight.
//!
//! A message in flight is an item of a [`DelayQueue`], whose deadline is the ack deadline: an ack
//! removes it, and what comes out of the queue was not acknowledged. `TimerActionOnce` would fit a
//! few leases with an action of their own each; it is a task and a future per message, where the
//! queue is one task for all of them and a slot and a timer per message.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::rc::Rc;

use clap::Args;
use glommio::sync::CancellationToken;
use glommio::timer::DelayQueue;
use glommio::timer::delay_queue::Key;
use glommio::yield_if_needed;
use slab::Slab;

use super::frames::NAME_BYTES_MAX;
use super::link::Outbox;
use super::protocol::Reply;

/// What a broker allows, as options of a program.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limits {
    /// Time that a consumer has to acknowledge a message.
    #[arg(long, default_value = "30s")]
    pub ack_deadline: humantime::Duration,

    /// Deliveries without an ack after which a message becomes a dead letter.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub attempts: u16,

    /// Messages that may wait for a consumer; more are refused.
    #[arg(long, default_value_t = 1_000_000)]
    pub waiting_max: usize,
}

/// All that one executor brokers.
pub struct Broker {
    limits: Limits,
    state: RefCell<State>,
    in_flight: DelayQueue<InFlight>,
    settled: CancellationToken,
}

#[derive(Default)]
struct State {
    topics: Vec<Topic>,
    topic_of: HashMap<Rc<str>, usize>,
    groups: Vec<Group>,
    /// What an ack names.
    deliveries: Slab<Delivery>,
    delivery_number: u32,
    /// Messages in all groups and topics that no consumer has.
    waiting: usize,
    is_ending: bool,
    counts: Counts,
}

struct Topic {
    name: Rc<str>,
    groups: Vec<usize>,
    /// Messages from before the first group.
    unclaimed: VecDeque<Message>,
}

struct Group {
    topic: usize,
    name: Rc<str>,
    waiting: VecDeque<Message>,
    /// Consumers with credit take turns.
    ready: VecDeque<Rc<Consumer>>,
}

/// A message of one group; its groups share the payload.
struct Message {
    payload: Rc<[u8]>,
    attempts: u16,
}

struct Delivery {
    /// Tells deliveries apart that use the same slot one after the other.
    number: u32,
    key: Key,
    consumer: Rc<Consumer>,
}

struct InFlight {
    slot: usize,
    message: Message,
}

/// A subscription.
pub(super) struct Consumer {
    group: usize,
    outbox: Rc<Outbox>,
    credit: Cell<u32>,
    is_listed: Cell<bool>,
}

impl Consumer {
    fn is_ready(&self) -> bool {
        self.credit.get() > 0 && self.outbox.len() < OUTBOX_BYTES_MAX
    }
}

impl Broker {
    /// An empty one, for the executor of this thread.
    pub fn new(limits: Limits) -> Broker {
        Broker {
            limits,
            state: RefCell::default(),
            in_flight: DelayQueue::new(),
            settled: CancellationToken::new(),
        }
    }

    /// Takes a message. False if it was refused.
    pub(super) fn publish(&self, topic: &str, payload: &[u8]) -> bool {
        let state = &mut *self.state.borrow_mut();
        let has_space = !state.is_ending && state.waiting < self.limits.waiting_max;
        let Some(topic) = has_space.then(|| state.topic(topic)).flatten() else {
            state.counts.refused += 1;
            return false;
        };
        state.counts.published += 1;
        self.enqueue(state, topic, payload.into());
        true
    }

    /// Adds a consumer to a group, and the group and the topic if there are none of these names.
    /// `None` if there are too many.
    pub(super) fn subscribe(
        &self,
        topic: &str,
        group: &str,
        credit: u32,
        outbox: &Rc<Outbox>,
    ) -> Option<Rc<Consumer>> {
        let state = &mut *self.state.borrow_mut();
        let topic = state.topic(topic)?;
        let group = state.group(topic, group)?;
        let consumer = Rc::new(Consumer {
            group,
            outbox: Rc::clone(outbox),
            credit: Cell::new(credit),
            is_listed: Cell::new(false),
        });
        self.offer(state, &consumer);
        Some(consumer)
    }

    /// Nothing more is delivered to it. What it holds is delivered again at its deadline.
    pub(super) fn unsubscribe(&self, consumer: &Rc<Consumer>) {
        let state = &mut *self.state.borrow_mut();
        consumer.credit.set(0);
        consumer.is_listed.set(true);
        let ready = &mut state.groups[consumer.group].ready;
        ready.retain(|other| !Rc::ptr_eq(other, consumer));
    }

    /// Delivers to a consumer whose outbox has become shorter.
    pub(super) fn resume(&self, consumer: &Rc<Consumer>) {
        if !consumer.is_listed.get() {
            self.offer(&mut self.state.borrow_mut(), consumer);
        }
    }

    /// Takes an ack that came with the connection of `outbox`, and answers it, ahead of what is
    /// delivered now that the consumer has credit again.
    pub(super) fn ack(&self, delivery: u64, outbox: &Rc<Outbox>) {
        let state = &mut *self.state.borrow_mut();
        let (slot, number) = (delivery as u32 as usize, (delivery >> 32) as u32);
        let named = state
            .deliveries
            .get(slot)
            .filter(|found| found.number == number && Rc::ptr_eq(&found.consumer.outbox, outbox));
        let removed = named.and_then(|found| self.in_flight.remove(found.key));
        let in_time = removed.is_some();
        outbox.push(|out| Reply::Acked { delivery, in_time }.append_to(out));
        if in_time {
            state.counts.acked += 1;
            self.take_back(state, slot);
        } else {
            state.counts.late_acks += 1;
        }
    }

    /// Redelivers what is not acknowledged in time, or makes it a dead letter, for ever.
    pub async fn watch_deadlines(&self) {
        loop {
            let overdue = self.in_flight.next_expired().await.into_inner();
            self.redeliver(overdue);
            yield_if_needed().await;
        }
    }

    fn redeliver(&self, overdue: InFlight) {
        let state = &mut *self.state.borrow_mut();
        let InFlight { slot, message } = overdue;
        let group = state.deliveries[slot].consumer.group;
        let topic = state.groups[group].topic;
        let dead = if message.attempts >= self.limits.attempts {
            state.dead_letters_of(topic)
        } else {
            None
        };
        if let Some(dead) = dead {
            state.counts.dead += 1;
            self.enqueue(state, dead, message.payload);
        } else {
            // Ahead of those that have not been delivered yet, as it is older.
            state.groups[group].waiting.push_front(message);
            state.waiting += 1;
        }
        self.take_back(state, slot);
    }

    /// Ends a delivery: its consumer gets its credit back.
    fn take_back(&self, state: &mut State, slot: usize) {
        let consumer = state.deliveries.remove(slot).consumer;
        consumer.credit.set(consumer.credit.get().saturating_add(1));
        if consumer.is_listed.get() {
            self.deliver(state, consumer.group)
        } else {
            self.offer(state, &consumer)
        }
        self.check_settled(state);
    }

    fn offer(&self, state: &mut State, consumer: &Rc<Consumer>) {
        if consumer.is_ready() {
            consumer.is_listed.set(true);
            let ready = &mut state.groups[consumer.group].ready;
            ready.push_back(Rc::clone(consumer));
        }
        self.deliver(state, consumer.group);
    }

    /// Gives a message to each group of the topic.
    fn enqueue(&self, state: &mut State, topic: usize, payload: Rc<[u8]>) {
        let groups = state.topics[topic].groups.len();
        for index in 0..groups {
            let group = state.topics[topic].groups[index];
            let payload = Rc::clone(&payload);
            let message = Message {
                payload,
                attempts: 0,
            };
            state.groups[group].waiting.push_back(message);
            state.waiting += 1;
            self.deliver(state, group);
        }
        if groups == 0 {
            let message = Message {
                payload,
                attempts: 0,
            };
            state.topics[topic].unclaimed.push_back(message);
            state.waiting += 1;
        }
    }

    /// Delivers the waiting messages of a group to those of its consumers that are ready.
    fn deliver(&self, state: &mut State, group: usize) {
        if state.is_ending {
            return;
        }
        let group = &mut state.groups[group];
        while !group.waiting.is_empty() {
            let Some(consumer) = group.ready.pop_front() else {
                return;
            };
            if !consumer.is_ready() {
                consumer.is_listed.set(false);
                continue;
            }
            let Some(mut message) = group.waiting.pop_front() else {
                return;
            };
            state.waiting -= 1;
            message.attempts = message.attempts.saturating_add(1);
            state.counts.delivered += 1;
            state.counts.redelivered += u64::from(message.attempts > 1);
            state.delivery_number = state.delivery_number.wrapping_add(1);
            let number = state.delivery_number;
            let entry = state.deliveries.vacant_entry();
            let slot = entry.key();
            consumer.outbox.push(|out| {
                let reply = Reply::Deliver {
                    delivery: (u64::from(number) << 32) | slot as u64,
                    attempt: message.attempts,
                    payload: &message.payload,
                };
                reply.append_to(out);
            });
            consumer.credit.set(consumer.credit.get() - 1);
            let in_flight = InFlight { slot, message };
            entry.insert(Delivery {
                number,
                key: self.in_flight.insert(in_flight, *self.limits.ack_deadline),
                consumer: Rc::clone(&consumer),
            });
            group.ready.push_back(consumer);
        }
    }

    /// From now on publishes are refused, and nothing is delivered. Completes when no message is
    /// in flight: each was acknowledged, or waits again.
    pub async fn end(&self) {
        self.state.borrow_mut().is_ending = true;
        self.check_settled(&self.state.borrow());
        self.settled.cancelled().await;
    }

    fn check_settled(&self, state: &State) {
        if state.is_ending && self.in_flight.is_empty() {
            self.settled.cancel();
        }
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        let state = self.state.borrow();
        Counts {
            waiting: state.waiting as u64,
            in_flight: self.in_flight.len() as u64,
            ..state.counts
        }
    }
}

impl State {
    fn topic(&mut self, name: &str) -> Option<usize> {
        if let Some(&topic) = self.topic_of.get(name) {
            return Some(topic);
        }
        // So that there is a name for its dead letters.
        let is_short = name.len() + DEAD_LETTERS.len() <= NAME_BYTES_MAX;
        let is_valid = !name.is_empty() && (is_short || name.ends_with(DEAD_LETTERS));
        if !is_valid || self.topics.len() >= NAMES_MAX {
            return None;
        }
        let (topic, name) = (self.topics.len(), Rc::<str>::from(name));
        self.topics.push(Topic {
            name: Rc::clone(&name),
            groups: Vec::new(),
            unclaimed: VecDeque::new(),
        });
        self.topic_of.insert(name, topic);
        Some(topic)
    }

    fn group(&mut self, topic: usize, name: &str) -> Option<usize> {
        let groups = &self.topics[topic].groups;
        if let Some(&group) = groups.iter().find(|&&it| *self.groups[it].name == *name) {
            return Some(group);
        }
        if name.is_empty() || self.groups.len() >= NAMES_MAX {
            return None;
        }
        let group = self.groups.len();
        self.groups.push(Group {
            topic,
            name: name.into(),
            waiting: std::mem::take(&mut self.topics[topic].unclaimed),
            ready: VecDeque::new(),
        });
        self.topics[topic].groups.push(group);
        Some(group)
    }

    /// Where messages of the topic go that were delivered too often. Dead letters stay where they
    /// are.
    fn dead_letters_of(&mut self, topic: usize) -> Option<usize> {
        let name = Rc::clone(&self.topics[topic].name);
        if name.ends_with(DEAD_LETTERS) {
            None
        } else {
            self.topic(&format!("{name}{DEAD_LETTERS}"))
        }
    }
}

/// What a broker has done, and has yet to do.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    missing_docs,
    reason = "they are counts of messages, acks and deliveries"
)]
pub struct Counts {
    pub published: u64,
    pub refused: u64,
    pub delivered: u64,
    pub redelivered: u64,
    pub acked: u64,
    pub late_acks: u64,
    pub dead: u64,
    pub in_flight: u64,
    pub waiting: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts {
            published,
            refused,
            delivered,
            redelivered,
            acked,
            late_acks,
            dead,
            in_flight,
            waiting,
        } = self;
        write!(
            f,
            "published {published}, refused {refused}, delivered {delivered}, redelivered {redelivered}, acked {acked}, late acks {late_acks}, dead {dead}, in flight {in_flight}, waiting {waiting}"
        )
    }
}

/// The end of the name of a topic of dead letters.
const DEAD_LETTERS: &str = ".dead";
/// Topics, and groups of all topics: clients make them.
const NAMES_MAX: usize = 10_000;
/// A consumer that does not read gets no more until it does.
const OUTBOX_BYTES_MAX: usize = 4 << 20;
