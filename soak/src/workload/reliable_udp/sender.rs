//! The sending end of a flow: a window of datagrams, a timer for each, and the peer's word on them.
//!
//! ```text
//!   pump ──▶ window ──▶ channel            ack ──▶ window ──▶ timers cancelled, room for the pump
//!              └─ a timer each ─▶ due? sent again, with twice the patience
//! ```
//!
//! The pump spreads a window over two round trips, so that what comes back is spread as well. When
//! the estimate grows, because the path did, timers in flight are moved to what it says now: at
//! once where they can be, else when they fire too soon. Without that each change of path would
//! have a whole window sent twice.

use std::future::poll_fn;

use examples::reliable_udp::ack::Ack;
use examples::reliable_udp::rto::{RTO_INITIAL, RTO_MAX, Rto};
use examples::reliable_udp::window::Window;
use examples::reliable_udp::wire::{DATAGRAM_BYTES_MAX, Datagram};
use glommio::yield_if_needed;

use super::channel::{Channel, READ_TIMEOUT_MAX};
use crate::workload::prelude::*;

/// The sending end of one flow.
pub(super) struct Sender {
    channel: Rc<Channel>,
    window: RefCell<Window<Key>>,
    rto: Cell<Rto>,
    /// The timeout by which the timers in flight were set, or the shortest since.
    armed_by: Cell<Duration>,
    backed_off_at: Cell<Instant>,
    waits_for_room: Cell<Option<Waker>>,
    is_over: Cell<bool>,
    judged_at: Cell<Instant>,
    /// For how long nothing was sent or acknowledged,
    silent_for: Cell<Duration>,
    /// and for how long nothing that had not been acknowledged before.
    stuck_for: Cell<Duration>,
}

impl Sender {
    pub(super) fn new(channel: Rc<Channel>) -> Rc<Self> {
        let rto = Rto::new(RTO_INITIAL);
        let now = clock::now();
        Rc::new(Sender {
            window: RefCell::new(Window::new(channel.window)),
            channel,
            rto: Cell::new(rto),
            armed_by: Cell::new(rto.estimated(0)),
            backed_off_at: Cell::new(now),
            waits_for_room: Cell::new(None),
            is_over: Cell::new(false),
            judged_at: Cell::new(now),
            silent_for: Cell::default(),
            stuck_for: Cell::default(),
        })
    }

    /// Sends one transfer after another until the run drains; then drops everything.
    pub(super) async fn run(self: Rc<Self>) {
        let pump = spawn_local(Rc::clone(&self).pump());
        let mut buffer = [0; DATAGRAM_BYTES_MAX];
        while !self.channel.is_draining() {
            match self.channel.receive(&mut buffer).await {
                Ok(Some(Datagram::Ack(ack))) => self.heard(&ack),
                Ok(None) => {}
                other => {
                    self.channel.holds(false, || format!("sender: {other:?}"));
                    break;
                }
            }
            self.judge_progress();
            yield_if_needed().await;
        }
        self.is_over.set(true);
        self.wake_pump();
        pump.await;
        self.channel.alarms.cancel_all();
    }

    async fn pump(self: Rc<Self>) {
        while self.room().await {
            for _ in 0..BURST {
                if self.has_room() {
                    self.send_next();
                }
            }
            self.channel.alarms.pause(self.pace()).await;
        }
    }

    /// Waits until there is room in the window. `false`: there is no more to send.
    async fn room(&self) -> bool {
        poll_fn(|cx| {
            if self.is_over.get() || self.has_room() {
                return Poll::Ready(!self.is_over.get());
            }
            self.waits_for_room.set(Some(cx.waker().clone()));
            Poll::Pending
        })
        .await
    }

    fn has_room(&self) -> bool {
        let limit = match self.rto.get().srtt() {
            Some(_) => self.channel.window,
            None => self.channel.window.min(INITIAL_WINDOW),
        };
        self.window.borrow().span() < limit
    }

    /// How long to wait after a burst, for a window to last for two round trips: that is how long
    /// it takes to repair a loss, so that one alone does not stop the flow.
    fn pace(&self) -> Duration {
        let Some(srtt) = self.rto.get().srtt() else {
            return PACE_MAX;
        };
        (srtt * 2 * BURST as u32 / self.channel.window as u32).min(PACE_MAX)
    }

    fn send_next(self: &Rc<Self>) {
        let segment = self.channel.next_segment();
        let sequence = self.window.borrow().next();
        let now = clock::now();
        let timer = self.arm(sequence, now + self.rto.get().timeout(0));
        self.window
            .borrow_mut()
            .push(Rc::clone(&segment), now, timer);
        self.silent_for.take();
        self.channel.send(&Datagram::Data {
            sequence,
            resent: 0,
            segment: &segment,
        });
    }

    fn arm(self: &Rc<Self>, sequence: u64, deadline: Instant) -> Key {
        let sender = Rc::clone(self);
        let due = async move { sender.due(sequence) };
        self.channel.alarms.arm(deadline, due)
    }

    /// The timer of a datagram has fired.
    fn due(self: &Rc<Self>, sequence: u64) {
        let mut rto = self.rto.get();
        let now = clock::now();
        let mut window = self.window.borrow_mut();
        let Some(flight) = window.flight(sequence) else {
            drop(window);
            return self.channel.holds(false, || {
                format!("datagram {sequence} was acknowledged and its timer fired")
            });
        };
        let due_at = flight.sent_at + rto.estimated(flight.resent);
        if now < due_at {
            flight.timer = self.arm(sequence, due_at);
            return;
        }
        if flight.sent_at >= self.backed_off_at.get() {
            rto.back_off();
            self.rto.set(rto);
            self.backed_off_at.set(now);
        }
        let timer = self.arm(sequence, now + rto.timeout(flight.resent + 1));
        flight.resend(now, timer);
        let (segment, resent) = (Rc::clone(&flight.segment), flight.resent);
        drop(window);
        bump(&self.channel.checker.stats.gauges.datagrams_repeated);
        self.silent_for.take();
        self.channel.send(&Datagram::Data {
            sequence,
            resent: u8::try_from(resent).unwrap_or(u8::MAX),
            segment: &segment,
        });
    }

    fn heard(&self, ack: &Ack) {
        let now = clock::now();
        let mut freed = Vec::new();
        let heard = self.window.borrow_mut().acknowledge(ack, &mut freed);
        self.silent_for.take();
        if !freed.is_empty() {
            self.stuck_for.take();
        }
        for timer in freed {
            self.channel.alarms.cancel(timer);
        }
        match heard {
            Ok(sent_at) => sent_at
                .into_iter()
                .for_each(|sent_at| self.sampled(sent_at, now)),
            Err(unsent) => self.channel.holds(false, || unsent.to_string()),
        }
        if self.has_room() {
            self.wake_pump();
        }
    }

    /// What was sent once, at `sent_at`, has been acknowledged.
    fn sampled(&self, sent_at: Instant, now: Instant) {
        let stats = &self.channel.checker.stats;
        stats.record(Timing::SegmentRtt, sent_at, now);
        let mut rto = self.rto.get();
        rto.sampled(now.saturating_duration_since(sent_at));
        self.rto.set(rto);
        let timeout = rto.estimated(0);
        let armed_by = self.armed_by.get();
        if timeout <= armed_by + armed_by / 8 {
            return self.armed_by.set(armed_by.min(timeout));
        }
        self.armed_by.set(timeout);
        for flight in self.window.borrow().flights() {
            // One that was set by a longer estimate still may be due before now by this one.
            let deadline = flight.sent_at + rto.estimated(flight.resent);
            self.channel.alarms.rearm(flight.timer, deadline.max(now));
        }
    }

    /// Something is in flight nearly always, and has a timer: so silence is bounded by the longest
    /// timeout, and what is sent over and over must get through at last.
    fn judge_progress(&self) {
        // While the process or the executor stood still no time has passed for the flow.
        let now = clock::now();
        let since = now.duration_since(self.judged_at.replace(now));
        let passed = since.min(2 * READ_TIMEOUT_MAX);
        let silent_for = self.silent_for.get() + passed;
        let stuck_for = self.stuck_for.get() + passed;

        let patience = self.channel.checker.control.patience();
        let rto = self.rto.get();
        let tries: Duration = (0..TRIES_MAX).map(|resent| rto.estimated(resent)).sum();
        let is_well = silent_for <= RTO_MAX + patience && stuck_for <= tries + patience;
        self.channel.holds(is_well, || {
            let span = self.window.borrow().span();
            format!("silent for {silent_for:?}, no progress for {stuck_for:?}, {span} in the window, {rto:?}")
        });
        // Said once for each time that it lasts so long.
        let counts_on = |passed| if is_well { passed } else { Duration::ZERO };
        self.silent_for.set(counts_on(silent_for));
        self.stuck_for.set(counts_on(stuck_for));
    }

    fn wake_pump(&self) {
        if let Some(waker) = self.waits_for_room.take() {
            waker.wake();
        }
    }
}

/// Before the first round trip was measured (RFC 6928).
const INITIAL_WINDOW: usize = 10;

/// How many datagrams the pump sends at a time.
const BURST: usize = 8;
const PACE_MAX: Duration = Duration::from_millis(50);

/// One in fifteen tries fails, each way having its losses: so many in a row do not happen.
const TRIES_MAX: u32 = 10;
