//! The receiving end of a flow: puts the stream together, judges it, and acknowledges.
//!
//! As a TCP does (RFC 5681, 4.2): every second datagram in order is acknowledged, or one alone
//! after a moment; whatever is out of order, fills a gap or comes twice is acknowledged at once.
//! The moment is a timer that is armed with nearly every other datagram and seldom fires.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use examples::reliable_udp::ack::ACK_DELAY;
use examples::reliable_udp::reassembly::{Arrival, Reassembly};
use examples::reliable_udp::wire::{DATAGRAM_BYTES_MAX, Datagram};
use glommio::yield_if_needed;

use super::channel::Channel;
use super::content::{Inbound, Progress};
use crate::check::checker::Checker;
use crate::check::invariants::Invariant;
use crate::check::model::Key;
use crate::clock;

/// The receiving end of one flow.
pub(super) struct Receiver {
    checker: Rc<Checker>,
    channel: Rc<Channel>,
    reassembly: RefCell<Reassembly>,
    inbound: RefCell<Inbound>,
    /// An acknowledgement that waits for a second datagram.
    ack_due: Cell<Option<Key>>,
}

impl Receiver {
    pub(super) fn new(
        checker: &Rc<Checker>,
        channel: Rc<Channel>,
        inbound: Inbound,
        limit: usize,
    ) -> Rc<Self> {
        Rc::new(Receiver {
            checker: Rc::clone(checker),
            channel,
            reassembly: RefCell::new(Reassembly::new(limit)),
            inbound: RefCell::new(inbound),
            ack_due: Cell::new(None),
        })
    }

    /// Receives until the run drains; then drops everything.
    pub(super) async fn run(self: Rc<Self>) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        while !self.checker.control.is_draining() {
            match self.channel.receive(&mut buffer).await {
                Ok(Some(Datagram::Data {
                    sequence, segment, ..
                })) => self.received(sequence, segment),
                Ok(Some(Datagram::Ack(ack))) => {
                    self.holds(false, || format!("the sender acknowledged {}", ack.next));
                }
                Ok(None) => {}
                Err(error) => {
                    self.holds(false, || format!("receiver's socket: {error}"));
                    break;
                }
            }
            yield_if_needed().await;
        }
        self.channel.alarms.cancel_all();
    }

    fn received(self: &Rc<Self>, sequence: u64, segment: &[u8]) {
        let mut reassembly = self.reassembly.borrow_mut();
        let had_gap = reassembly.has_gap();
        let arrival = reassembly.receive(sequence, segment, |segment| self.deliver(segment));
        let has_gap = had_gap || reassembly.has_gap();
        drop(reassembly);
        match arrival {
            Arrival::InOrder if !has_gap => self.acknowledge_soon(),
            Arrival::InOrder | Arrival::Ahead | Arrival::Duplicate => self.acknowledge(),
            Arrival::Beyond => self.holds(false, || {
                format!("datagram {sequence} is beyond the window of the sender")
            }),
        }
    }

    /// The next segment in order.
    fn deliver(&self, segment: &[u8]) {
        let consumed = self.inbound.borrow_mut().consume(segment);
        if let Ok(Progress::Bytes(count)) = consumed {
            let delivered = &self.checker.stats.gauges.bytes_delivered;
            delivered.fetch_add(count as u64, Ordering::Relaxed);
        }
        self.holds(consumed.is_ok(), || format!("{consumed:?}"));
    }

    fn acknowledge_soon(self: &Rc<Self>) {
        if self.ack_due.get().is_some() {
            return self.acknowledge();
        }
        let receiver = Rc::clone(self);
        let due = async move {
            receiver.ack_due.set(None);
            receiver.acknowledge();
        };
        let key = self.channel.alarms.arm(clock::now() + ACK_DELAY, due);
        self.ack_due.set(Some(key));
    }

    fn acknowledge(&self) {
        if let Some(key) = self.ack_due.take() {
            self.channel.alarms.cancel(key);
        }
        let ack = self.reassembly.borrow().ack();
        self.channel.send(&Datagram::Ack(ack));
    }

    fn holds(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.checker.holds(Invariant::BytesWhole, holds, detail);
    }
}
