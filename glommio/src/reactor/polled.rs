//! The second ring: direct I/O on devices that are polled for completions.
//!
//! The kernel does not post these by itself. Entering this ring asks the device; so as long as
//! anything is in flight here, each turn does that, and an idle thread sleeps only as long as an
//! answer [would come too early](super::hybrid_wait). Otherwise this ring costs a comparison for
//! each turn, and does not exist before there is something for it.
//!
//! What a device refuses to do in this way (`EOPNOTSUPP`) goes through the first ring, as does all
//! that is asked of it from then on. The kernel cannot cancel anything here: the end of what is
//! given up is awaited.

use std::cell::OnceCell;
use std::io;
use std::time::Instant;

use super::Reactor;
use super::hybrid_wait::HybridWait;
use super::in_flight::Lane;
use crate::ring::{Feature, Ring, Wait};
use crate::sys::block_device::PolledQueue;

#[derive(Default)]
pub(super) struct PolledRing {
    /// `None` inside if the kernel does not give one, which is not asked again.
    ring: OnceCell<Option<Ring>>,
    pub(super) wait: HybridWait,
}

impl PolledRing {
    pub(super) fn get(&self) -> Option<&Ring> {
        self.ring.get()?.as_ref()
    }
}

impl Reactor {
    /// Whether an operation on this device goes to the second ring, which is made now if it was not
    /// yet.
    pub(super) fn polls_for(&self, queue: &PolledQueue) -> bool {
        if !queue.is_usable() || !self.has(Feature::Polled) {
            return false;
        }
        if let Some(ring) = self.polled.ring.get() {
            return ring.is_some();
        }
        let made = self.make_polled_ring();
        if let Err(error) = &made {
            tracing::debug!("no ring for polled I/O, which goes the ordinary way: {error}");
        }
        // Set after the log, whose subscriber may do I/O and be first.
        let _first = self.polled.ring.set(made.ok());
        self.polled.get().is_some()
    }

    fn make_polled_ring(&self) -> io::Result<Ring> {
        let ring = Ring::polling(self.ring_entries(), self.ring.features())?;
        self.register_too(&ring)?;
        tracing::debug!(entries = ring.entries(), "a ring for polled I/O is set up");
        Ok(ring)
    }

    /// Whether operations of the second ring are queued or in flight.
    #[inline]
    pub(super) fn is_polling(&self) -> bool {
        self.in_flight.borrow().unfinished_polled() > 0
    }

    /// Hands over what waits for the second ring, asks the device, and takes what it has. Wakes no
    /// task.
    ///
    /// # Panics
    ///
    /// Panics where [`try_exchange_polled`](Self::try_exchange_polled) fails.
    #[inline]
    pub(super) fn exchange_polled(&self) {
        if self.is_polling()
            && let Err(error) = self.try_exchange_polled()
        {
            panic!("io_uring_enter failed: {error}");
        }
    }

    /// # Errors
    ///
    /// As [`try_enter`](Self::try_enter).
    pub(super) fn try_exchange_polled(&self) -> io::Result<()> {
        let Some(ring) = self.polled.get() else {
            return Ok(());
        };
        self.flush_polled(ring);
        self.try_enter_into(ring, Wait::Now)?;
        if !ring.completions_posted() {
            return Ok(());
        }
        self.polled.wait.completed(Instant::now());
        let mut reaped = self.reaped.take();
        ring.reap(&mut reaped);
        let mut deliveries = self.deliveries.borrow_mut();
        for completion in reaped.drain(..) {
            let mut in_flight = self.in_flight.borrow_mut();
            in_flight.complete_polled(completion, &mut deliveries);
        }
        self.reaped.set(reaped);
        Ok(())
    }

    /// Moves what waits for the second ring into it. What does not fit goes with the next turn, which
    /// follows at once.
    fn flush_polled(&self, ring: &Ring) {
        let mut in_flight = self.in_flight.borrow_mut();
        let queued = in_flight.queued(Lane::Polled);
        if queued == 0 {
            return;
        }
        let has_others = in_flight.unfinished_polled() > queued;
        let _ = in_flight.flush_polled(ring);
        self.polled.wait.handed_over(Instant::now(), has_others);
    }

    /// Until when an idle thread may sleep, for the device has no answer before. `None` if it is to
    /// be asked now, or nothing is in flight there.
    pub(super) fn polled_sleep_end(&self) -> Option<Instant> {
        match self.is_polling() {
            true => self.polled.wait.sleep_end(Instant::now()),
            false => None,
        }
    }

    /// Hands over what waits for the second ring, in the middle of a round.
    pub(super) fn hand_over_polled(&self) {
        let Some(ring) = self.polled.get() else {
            return;
        };
        self.flush_polled(ring);
        if ring.queued() > 0
            && let Err(error) = ring.submit_only()
        {
            tracing::warn!(
                "submitting polled I/O failed, retried at the end of the round: {error}"
            );
        }
    }
}
