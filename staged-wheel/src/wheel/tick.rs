//! Ticks: the parts of 2^20 ns (1.05 ms) that the wheel divides time into.

/// A tick, counted from the queue's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tick(u64);

impl Tick {
    pub(super) const FIRST: Tick = Tick(0);
    /// Of the number of a tick that nanoseconds reach.
    pub(super) const BITS: u32 = u64::BITS - TICK_BITS;

    #[inline]
    pub(super) fn new(number: u64) -> Tick {
        Tick(number)
    }

    /// The tick that a deadline or a moment lies in.
    #[inline]
    pub(super) fn of(ns: u64) -> Tick {
        Tick(ns >> TICK_BITS)
    }

    /// The first tick of a slot of 2^`tick_bits` ticks.
    #[inline]
    pub(super) fn first_of(slot: u64, tick_bits: u32) -> Tick {
        Tick(slot << tick_bits)
    }

    /// The number of the slot of 2^`tick_bits` ticks that it lies in.
    #[inline]
    pub(super) fn slot(self, tick_bits: u32) -> u64 {
        self.0 >> tick_bits
    }

    /// The last tick of that slot.
    #[inline]
    pub(super) fn last_of_slot(self, tick_bits: u32) -> Tick {
        Tick(self.0 | ((1 << tick_bits) - 1))
    }

    /// How many ticks later this is than `earlier`.
    #[inline]
    pub(super) fn since(self, earlier: Tick) -> u64 {
        self.0 - earlier.0
    }

    #[inline]
    pub(super) fn previous(self) -> Tick {
        Tick(self.0 - 1)
    }

    /// Its first nanosecond. The tick is one that nanoseconds reach.
    #[inline]
    pub(super) fn begin_ns(self) -> u64 {
        self.0 << TICK_BITS
    }

    /// The first nanosecond behind it, or the end of time.
    #[inline]
    pub(super) fn end_ns(self) -> u64 {
        begin_ns(self.0 + 1, TICK_BITS)
    }

    /// Its last nanosecond.
    #[inline]
    pub(super) fn last_ns(self) -> u64 {
        self.begin_ns() | ((1 << TICK_BITS) - 1)
    }
}

/// The first nanosecond of a span of 2^`bits` nanoseconds, or the end of time.
pub(super) fn begin_ns(number: u64, bits: u32) -> u64 {
    if number >> (u64::BITS - bits) == 0 {
        number << bits
    } else {
        u64::MAX
    }
}

/// Nanoseconds to a tick, as a power of two.
pub(crate) const TICK_BITS: u32 = 20;
