//! One end of a flow's link: puts the faults between the protocol and its socket.
//!
//! ```text
//!   send ──▶ fate ──┬── lost
//!                   └── a timer per datagram (and per copy), for its delay ──▶ socket ──▶ peer
//! ```
//!
//! A datagram travels in a timer: it is handed to the socket when it should be there, and on
//! loopback it is. What the socket then does is held against what was handed over: more datagrams
//! than were sent, or more damaged ones, would be the library's doing and not the link's.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicU64;

use examples::reliable_udp::wire::{Datagram, Refused, SEGMENT_BYTES_MAX, Salt};
use glommio::net::UdpSocket;

use super::faults::{Distance, Faults};
use crate::workload::alarms::Alarms;
use crate::workload::message_queue::judge_timeout;
use crate::workload::prelude::*;

/// What both ends of a flow agree on.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    seed: u64,
    number: u64,
    distance: Distance,
    window: usize,
    data: Arc<Direction>,
    acks: Arc<Direction>,
}

impl Flow {
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let (distance, window) = LINKS[number as usize % LINKS.len()];
        let mut rng = stream(seed, FLOW_IDENTITIES + number);
        let mut direction = || Arc::new(Direction::new(Salt(rng.u64(..))));
        Flow {
            seed,
            number,
            distance,
            window,
            data: direction(),
            acks: direction(),
        }
    }

    /// One end of the link: that of the sender has a socket that is connected.
    pub(super) fn channel(
        &self,
        checker: &Rc<Checker>,
        socket: UdpSocket,
        is_connected: bool,
    ) -> glommio::Result<Rc<Channel>, ()> {
        let identity = 2 * (FLOW_IDENTITIES + self.number) + u64::from(is_connected);
        let faults = Faults::new(stream(!self.seed, identity), self.distance, clock::now());
        let content = stream(self.seed ^ self.number << 32, self.number);
        let read_timeout = (self.distance.one_way * 2).min(READ_TIMEOUT_MAX);
        socket.set_read_timeout(Some(read_timeout))?;
        socket.set_write_timeout(Some(WRITE_TIMEOUT))?;
        let (outgoing, incoming) = match is_connected {
            true => (&self.data, &self.acks),
            false => (&self.acks, &self.data),
        };
        Ok(Rc::new(Channel {
            checker: Rc::clone(checker),
            alarms: Alarms::new(checker, None),
            window: self.window,
            content: RefCell::new(content),
            socket,
            peer: Cell::new(None),
            is_connected,
            faults: RefCell::new(faults),
            outgoing: Arc::clone(outgoing),
            incoming: Arc::clone(incoming),
            read_timeout,
        }))
    }
}

/// Distances in turn, with the datagrams that each keeps in flight.
const LINKS: [(Distance, usize); 4] = [
    (link(260, 15), 384),
    (link(5, 2), 8),
    (link(520, 30), 768),
    (link(60, 8), 48),
];

const fn link(one_way_ms: u64, jitter_ms: u64) -> Distance {
    Distance {
        one_way: Duration::from_millis(one_way_ms),
        jitter: Duration::from_millis(jitter_ms),
    }
}

/// Where the identities of flows begin among those of the seed's generators.
const FLOW_IDENTITIES: u64 = 0x5544_5000;

/// One direction of a flow, as both of its ends know it.
#[derive(Debug)]
struct Direction {
    salt: Salt,
    /// Datagrams given to the socket of one end ..
    handed: AtomicU64,
    /// .. of those, the ones that were damaged before,
    damaged: AtomicU64,
    /// and those that came out of the socket of the other.
    received: AtomicU64,
    refused: AtomicU64,
}

impl Direction {
    fn new(salt: Salt) -> Self {
        Direction {
            salt,
            handed: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
            received: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }
}

/// What a socket waits for at most, as it is also how soon a flow sees that the run drains.
pub(super) const READ_TIMEOUT_MAX: Duration = Duration::from_millis(100);

/// A socket and what stands before it.
pub(super) struct Channel {
    pub(super) checker: Rc<Checker>,
    pub(super) alarms: Rc<Alarms>,
    /// How many datagrams may be in flight.
    pub(super) window: usize,
    content: RefCell<Rng>,
    socket: UdpSocket,
    /// `None`: the socket is connected, or has received nothing yet.
    peer: Cell<Option<SocketAddr>>,
    is_connected: bool,
    faults: RefCell<Faults>,
    outgoing: Arc<Direction>,
    incoming: Arc<Direction>,
    read_timeout: Duration,
}

impl Channel {
    /// What the flow carries, which both ends make from the seed: segments of random length and random bytes, one after
    /// the other.
    pub(super) fn next_segment(&self) -> Rc<[u8]> {
        let mut content = self.content.borrow_mut();
        let mut segment = vec![0; content.usize(SEGMENT_BYTES)];
        content.fill(&mut segment);
        Rc::from(segment)
    }

    /// Sends a datagram to the peer, unless the link loses it.
    pub(super) fn send(self: &Rc<Self>, datagram: &Datagram<'_>) {
        let gauges = &self.checker.stats.gauges;
        bump(&gauges.datagrams_sent);
        let now = clock::now();
        let fate = self.faults.borrow_mut().decide(now);
        let Some(carried) = fate else {
            return bump(&gauges.datagrams_lost);
        };
        let mut bytes = datagram.encode(self.outgoing.salt);
        if let Some(after) = carried.again {
            self.carry(now + after, bytes.clone(), false);
        }
        if let Some(damage) = carried.damage {
            let bit = (damage % (bytes.len() as u64 * 8)) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        self.carry(now + carried.delay, bytes, carried.damage.is_some());
    }

    /// Receives a datagram into `buffer`. `None`: nothing came in time, or nothing of use.
    ///
    /// # Errors
    ///
    /// What the socket gives, but for its timeout, and for a refusal by a peer that has ended
    /// before.
    pub(super) async fn receive<'a>(
        &self,
        buffer: &'a mut [u8],
    ) -> io::Result<Option<Datagram<'a>>> {
        let began = clock::now();
        let received = if self.is_connected {
            self.socket.recv(buffer).await.map(|length| (length, None))
        } else {
            let received = self.socket.recv_from(buffer).await;
            received.map(|(length, from)| (length, Some(from)))
        };
        match received.map_err(io::Error::from) {
            Ok((length, from)) => Ok(self.judge(&buffer[..length], from)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                judge_timeout(&self.checker, began, self.read_timeout);
                Ok(None)
            }
            Err(error) if self.is_farewell(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn carry(self: &Rc<Self>, at: Instant, bytes: Vec<u8>, is_damaged: bool) {
        let at_ns = self.checker.control.since_start_ns(at);
        let at = at + Duration::from_nanos(at_ns.next_multiple_of(FRAME_NS) - at_ns);
        let channel = Rc::clone(self);
        self.alarms.arm(at, async move {
            if is_damaged {
                channel.outgoing.damaged.fetch_add(1, Ordering::Relaxed);
            }
            channel.outgoing.handed.fetch_add(1, Ordering::Release);
            let sent = match channel.peer.get() {
                Some(peer) => channel.socket.send_to(&bytes, peer).await,
                None => channel.socket.send(&bytes).await,
            };
            let sent = sent.map_err(io::Error::from);
            let is_well = match &sent {
                Ok(length) => *length == bytes.len(),
                Err(error) => channel.is_farewell(error),
            };
            channel.holds(is_well, || {
                format!("a datagram of {} bytes: {sent:?}", bytes.len())
            });
        });
    }

    fn judge<'a>(&self, bytes: &'a [u8], from: Option<SocketAddr>) -> Option<Datagram<'a>> {
        if self.peer.get().is_some() && from != self.peer.get() {
            // From another sender than the peer.
            return None;
        }
        let decoded = Datagram::decode(bytes, self.incoming.salt);
        if let (None, Ok(_)) = (self.peer.get(), decoded) {
            self.peer.set(from);
        }
        let received = self.incoming.received.fetch_add(1, Ordering::Relaxed) + 1;
        let handed = self.incoming.handed.load(Ordering::Acquire);
        self.holds(received <= handed, || {
            format!("{received} datagrams came of {handed} that were sent")
        });
        match decoded {
            Ok(datagram) => Some(datagram),
            Err(refused) => {
                self.refuse(refused);
                None
            }
        }
    }

    fn refuse(&self, refused: Refused) {
        let count = self.incoming.refused.fetch_add(1, Ordering::Relaxed) + 1;
        let damaged = self.incoming.damaged.load(Ordering::Relaxed);
        self.holds(refused == Refused::Checksum && count <= damaged, || {
            format!("{refused}; {count} were refused and {damaged} damaged on purpose")
        });
    }

    /// When a run drains, one end is the first to close.
    fn is_farewell(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::ConnectionRefused && self.checker.control.is_draining()
    }

    pub(super) fn is_draining(&self) -> bool {
        self.checker.control.is_draining()
    }

    pub(super) fn holds(&self, holds: bool, detail: impl FnOnce() -> String) {
        self.checker.holds(Invariant::BytesWhole, holds, detail);
    }
}

const SEGMENT_BYTES: RangeInclusive<usize> = 200..=SEGMENT_BYTES_MAX;

/// Never reached on loopback, where a datagram is delivered or dropped when it is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Links deliver in frames, as radio links do: it saves most of the wakes, and makes equal
/// deadlines.
const FRAME_NS: u64 = 2_000_000;
