//! Window and reassembly together, under any schedule of loss, duplication and reordering, against
//! sets of numbers that can hardly be wrong.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::ack::Ack;
use super::reassembly::{Arrival, Reassembly};
use super::window::Window;

#[derive(Clone, Debug)]
enum Step {
    /// Sends the next datagrams, as many as the window lets through.
    Send(u8),
    /// The timer of one in flight fires.
    Resend(Index),
    /// A datagram on its way arrives, whichever; it may come again.
    Arrive {
        which: Index,
        comes_again: bool,
    },
    Lose(Index),
    /// An acknowledgement on its way arrives, whichever; it may come again.
    Hear {
        which: Index,
        comes_again: bool,
    },
    LoseAck(Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1u8..20).prop_map(Step::Send),
        2 => any::<Index>().prop_map(Step::Resend),
        6 => (any::<Index>(), prop::bool::weighted(0.1))
            .prop_map(|(which, comes_again)| Step::Arrive { which, comes_again }),
        1 => any::<Index>().prop_map(Step::Lose),
        3 => (any::<Index>(), prop::bool::weighted(0.1))
            .prop_map(|(which, comes_again)| Step::Hear { which, comes_again }),
        1 => any::<Index>().prop_map(Step::LoseAck),
    ]
}

/// Both ends, the network between them, and the model.
struct World {
    limit: usize,
    now: Instant,
    window: Window<u64>,
    reassembly: Reassembly,
    data: Vec<(u64, Rc<[u8]>)>,
    acks: Vec<Ack>,

    sent: Vec<Rc<[u8]>>,
    received: BTreeSet<u64>,
    delivered: Vec<Rc<[u8]>>,
    /// The timers that ought to be armed; never two with the same name.
    timers: BTreeSet<u64>,
    next_timer: u64,
    unacked: BTreeSet<u64>,
    resent: BTreeSet<u64>,
}

impl World {
    fn new(limit: usize) -> Self {
        World {
            limit,
            now: Instant::now(),
            window: Window::new(limit),
            reassembly: Reassembly::new(limit),
            data: Vec::new(),
            acks: Vec::new(),
            sent: Vec::new(),
            received: BTreeSet::new(),
            delivered: Vec::new(),
            timers: BTreeSet::new(),
            next_timer: 0,
            unacked: BTreeSet::new(),
            resent: BTreeSet::new(),
        }
    }

    fn take(&mut self, step: &Step) {
        self.now += Duration::from_millis(1);
        match step {
            Step::Send(count) => (0..*count).for_each(|_| self.send()),
            Step::Resend(which) => {
                let unacked: Vec<u64> = self.unacked.iter().copied().collect();
                if !unacked.is_empty() {
                    self.resend(*which.get(&unacked));
                }
            }
            Step::Arrive { which, comes_again } => {
                if let Some((sequence, segment)) = pick(&mut self.data, which, *comes_again) {
                    self.arrive(sequence, &segment);
                }
            }
            Step::Lose(which) => drop(pick(&mut self.data, which, false)),
            Step::Hear { which, comes_again } => {
                if let Some(ack) = pick(&mut self.acks, which, *comes_again) {
                    self.hear(&ack);
                }
            }
            Step::LoseAck(which) => drop(pick(&mut self.acks, which, false)),
        }
        self.judge();
    }

    fn send(&mut self) {
        let oldest = self.unacked.first().copied();
        let next = self.sent.len() as u64;
        let is_full = oldest.is_some_and(|oldest| next - oldest == self.limit as u64);
        assert_eq!(self.window.is_full(), is_full);
        assert_eq!(self.window.next(), next);
        if is_full {
            return;
        }
        let segment: Rc<[u8]> = Rc::from(next.to_le_bytes());
        let timer = self.arm();
        self.window.push(Rc::clone(&segment), self.now, timer);
        self.unacked.insert(next);
        self.sent.push(Rc::clone(&segment));
        self.data.push((next, segment));
    }

    fn resend(&mut self, sequence: u64) {
        let timer = self.arm();
        let flight = self
            .window
            .flight(sequence)
            .expect("it was never acknowledged");
        assert!(self.timers.remove(&flight.timer), "it fires, being armed");
        flight.resend(self.now, timer);
        self.resent.insert(sequence);
        self.data.push((sequence, Rc::clone(&flight.segment)));
    }

    fn arm(&mut self) -> u64 {
        self.next_timer += 1;
        self.timers.insert(self.next_timer);
        self.next_timer
    }

    fn arrive(&mut self, sequence: u64, segment: &[u8]) {
        let delivered = &mut self.delivered;
        let before = delivered.len();
        let arrival = self
            .reassembly
            .receive(sequence, segment, |segment| delivered.push(segment.into()));
        let expected = if !self.received.insert(sequence) {
            Arrival::Duplicate
        } else if sequence == before as u64 {
            Arrival::InOrder
        } else {
            Arrival::Ahead
        };
        assert_eq!(arrival, expected, "{sequence} with {before} delivered");
        self.acks.push(self.reassembly.ack());
    }

    fn hear(&mut self, ack: &Ack) {
        let covered: BTreeSet<u64> = self
            .unacked
            .iter()
            .copied()
            .filter(|&sequence| ack.covers(sequence))
            .collect();
        assert!(
            covered.is_subset(&self.received),
            "only what came is acknowledged"
        );
        let mut freed = Vec::new();
        let sampled = self
            .window
            .acknowledge(ack, &mut freed)
            .expect("nothing else was sent");
        assert_eq!(freed.len(), covered.len());
        for timer in freed {
            assert!(self.timers.remove(&timer), "timer {timer} was freed twice");
        }
        assert_eq!(
            sampled.is_some(),
            !covered.is_subset(&self.resent),
            "Karn's rule"
        );
        self.unacked.retain(|sequence| !covered.contains(sequence));
    }

    /// What must hold at any time.
    fn judge(&self) {
        let next = (0..).find(|sequence| !self.received.contains(sequence));
        let next = next.expect("not every number was received");
        assert_eq!(self.delivered, self.sent[..next as usize]);
        let ack = self.reassembly.ack();
        assert_eq!(ack.next, next);
        for sequence in 0..self.sent.len() as u64 + 70 {
            assert_eq!(
                ack.covers(sequence),
                self.received.contains(&sequence),
                "{sequence}, from {next}"
            );
        }
        assert!(self.window.span() <= self.limit);
        let armed: BTreeSet<u64> = self.window.flights().map(|flight| flight.timer).collect();
        assert_eq!(
            armed, self.timers,
            "a timer for each in flight, and no other"
        );
        assert_eq!(armed.len(), self.unacked.len());
    }

    /// The network heals: all that is out arrives after one more try.
    fn finish(&mut self) {
        for sequence in self.unacked.clone() {
            self.resend(sequence);
        }
        self.acks.clear();
        for (sequence, segment) in std::mem::take(&mut self.data) {
            self.arrive(sequence, &segment);
        }
        let last = *self.acks.last().unwrap_or(&self.reassembly.ack());
        self.hear(&last);
        self.judge();
        assert_eq!(self.delivered, self.sent, "everything, once and in order");
        assert!(self.timers.is_empty() && self.window.span() == 0);
    }
}

/// Takes one of `among`, or a copy of it.
fn pick<T: Clone>(among: &mut Vec<T>, which: &Index, comes_again: bool) -> Option<T> {
    if among.is_empty() {
        return None;
    }
    let index = which.index(among.len());
    Some(if comes_again {
        among[index].clone()
    } else {
        among.swap_remove(index)
    })
}

proptest! {
    /// Any schedule delivers exactly what was sent, keeps the window, and leaves no timer behind.
    #[test]
    fn any_schedule_delivers_the_exact_bytes(
        limit in prop_oneof![1usize..=4, 5usize..=200],
        steps in vec(step(), 0..400),
    ) {
        let mut world = World::new(limit);
        steps.iter().for_each(|step| world.take(step));
        world.finish();
    }
}
