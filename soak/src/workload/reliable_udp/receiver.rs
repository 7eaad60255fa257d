//! The receiving end of a flow: puts the stream together, judges it, and acknowledges.
//!
//! As a TCP does (RFC 5681, 4.2): every second datagram in order is acknowledged, or one alone after a moment; whatever is
//! out of order, fills a gap or comes twice is acknowledged at once. The moment is a timer that is armed with nearly every
//! other datagram and seldom fires.

use examples::reliable_udp::ack::ACK_DELAY;
use examples::reliable_udp::reassembly::{Arrival, Reassembly};
use examples::reliable_udp::wire::{DATAGRAM_BYTES_MAX, Datagram};
use glommio::yield_if_needed;

use super::channel::Channel;
use crate::workload::prelude::*;

/// The receiving end of one flow.
pub(super) struct Receiver {
    channel: Rc<Channel>,
    reassembly: RefCell<Reassembly>,
    /// An acknowledgement that waits for a second datagram.
    ack_due: Cell<Option<Key>>,
}

impl Receiver {
    pub(super) fn new(channel: Rc<Channel>) -> Rc<Self> {
        Rc::new(Receiver {
            reassembly: RefCell::new(Reassembly::new(channel.window)),
            channel,
            ack_due: Cell::new(None),
        })
    }

    /// Receives until the run drains; then drops everything.
    pub(super) async fn run(self: Rc<Self>) {
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        while !self.channel.is_draining() {
            match self.channel.receive(&mut buffer).await {
                Ok(Some(Datagram::Data {
                    sequence, segment, ..
                })) => self.received(sequence, segment),
                Ok(None) => {}
                other => {
                    self.channel.holds(false, || format!("receiver: {other:?}"));
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
            Arrival::Beyond => self.channel.holds(false, || {
                format!("datagram {sequence} is beyond the window of the sender")
            }),
        }
    }

    /// The next segment in order.
    fn deliver(&self, segment: &[u8]) {
        let expected = self.channel.next_segment();
        let gauges = &self.channel.checker.stats.gauges;
        add(&gauges.bytes_delivered, segment.len() as u64);
        self.channel.holds(*expected == *segment, || {
            let differs = segment.iter().zip(&*expected).position(|(a, b)| a != b);
            let [found, expected] = [segment.len(), expected.len()];
            format!("{found} bytes instead of {expected}, the first that differs at {differs:?}")
        });
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
}
