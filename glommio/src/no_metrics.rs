//! What `metrics/` is without the feature `metrics`: nothing.

use std::marker::PhantomData;
use std::ops::Deref;
use std::time::Instant;

#[derive(Debug)]
pub(crate) struct Registered(());

impl Registered {
    pub(crate) fn new(
        _executor: (usize, &str),
        _run: Shared<RunCounts>,
        _timers: Shared<TimerCounts>,
        _ring: Shared<RingCounts>,
        _pools: [Shared<PoolCounts>; 3],
    ) -> Self {
        Registered(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Shared<C>(PhantomData<C>);

impl<C> Clone for Shared<C> {
    fn clone(&self) -> Self {
        Shared(PhantomData)
    }
}

/// Counts without a state.
pub(crate) trait Stateless: 'static {
    const COUNTS: &'static Self;
}

impl<C: Stateless> Deref for Shared<C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        C::COUNTS
    }
}

macro_rules! stateless {
    ($($Counts:ident),*) => {
        $(
            #[derive(Debug, Default)]
            pub(crate) struct $Counts(());

            impl Stateless for $Counts {
                const COUNTS: &'static Self = &$Counts(());
            }
        )*
    };
}

stateless!(RunCounts, TimerCounts, RingCounts, PoolCounts);

impl RunCounts {
    #[inline(always)]
    pub(crate) fn turn(&self) {}

    #[inline(always)]
    pub(crate) fn parked(&self) {}

    #[inline(always)]
    pub(crate) fn round_over(&self, _now: impl FnOnce() -> Instant, _slice_end: Instant) {}

    #[inline(always)]
    pub(crate) fn woken_by_io(&self) {}

    #[inline(always)]
    pub(crate) fn woken_by_thread(&self) {}

    #[inline(always)]
    pub(crate) fn publish(&self, _polls: u64, _first_polls: u64, _tasks_queued: u64) {}
}

impl TimerCounts {
    #[inline(always)]
    pub(crate) fn armed(&self) {}

    #[inline(always)]
    pub(crate) fn rearmed(&self) {}

    #[inline(always)]
    pub(crate) fn cancelled(&self, _timers: usize) {}
}

impl RingCounts {
    #[inline(always)]
    pub(crate) fn entered(&self, _submitted: usize) {}
}

impl PoolCounts {
    #[inline(always)]
    pub(crate) fn begun(&self) {}

    #[inline(always)]
    pub(crate) fn done(&self, _calls: usize) {}
}
