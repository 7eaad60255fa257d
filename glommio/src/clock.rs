//! The clock of an executor: all that goes by deadlines reads it, and nothing else reads that of
//! the system.
//!
//! It is the system's monotonic clock, and without the feature `simulation` that is all. With it, the
//! clock of an executor can be paused. It is moved by the reactor then, and when it goes on it
//! differs from the system's by what was left out or added. Two scales of [`Instant`]s follow: the
//! *real* one, by which the kernel waits, time is shared among task queues and other threads
//! work, and that of the executor, by which its timers are set.
//!
//! No reading is earlier than one before it on the same executor.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

/// Without paused clocks: the functions are documented below.
#[cfg(not(feature = "simulation"))]
mod reading {
    use std::time::Instant;

    #[inline]
    pub(crate) fn real() -> Instant {
        Instant::now()
    }

    pub(crate) fn is_replaced() -> bool {
        false
    }

    /// The clock of one executor.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Clock {
        /// As the system's.
        Real,
    }

    impl Clock {
        pub(crate) fn new(_: bool, _: Instant) -> Self {
            Clock::Real
        }
    }

    #[inline]
    pub(crate) fn replace(clock: Clock) -> Clock {
        clock
    }

    #[inline]
    pub(crate) fn now() -> Instant {
        real()
    }

    #[inline]
    pub(crate) fn at(real: Instant) -> Instant {
        real
    }

    #[inline]
    pub(crate) fn real_time_of(instant: Instant) -> Option<Instant> {
        Some(instant)
    }

    #[inline]
    pub(crate) fn is_paused() -> bool {
        false
    }

    pub(crate) fn is_real() -> bool {
        true
    }
}

#[cfg(feature = "simulation")]
mod reading {
    use std::cell::Cell;
    use std::time::{Duration, Instant};

    /// What the system's clock says; in a simulation, what its place is taken by.
    #[inline]
    pub(crate) fn real() -> Instant {
        let Some(ticking) = TICKING.get() else {
            return Instant::now();
        };
        let next = ticking.next + ticking.step;
        TICKING.set(Some(Ticking { next, ..ticking }));
        ticking.next
    }

    /// Whether something takes the place of the system's clock.
    pub(crate) fn is_replaced() -> bool {
        TICKING.get().is_some()
    }

    /// A clock that moves by a step whenever it is read: so each run of a simulation shares time
    /// among its tasks alike.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Ticking {
        pub(crate) next: Instant,
        pub(crate) step: Duration,
    }

    /// Has `clock` take the place of the system's on this thread, or that itself. The one before.
    pub(crate) fn replace_real(clock: Option<Ticking>) -> Option<Ticking> {
        TICKING.replace(clock)
    }

    /// The clock of one executor.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Clock {
        /// As the system's.
        Real,
        Paused(Instant),
        /// It said `said` at the moment `at` and goes on since.
        Resumed {
            said: Instant,
            at: Instant,
        },
    }

    thread_local! {
        /// That of the executor which runs on this thread.
        static CLOCK: Cell<Clock> = const { Cell::new(Clock::Real) };

        static TICKING: Cell<Option<Ticking>> = const { Cell::new(None) };
    }

    impl Clock {
        /// That of a new executor, which is made `now`.
        pub(crate) fn new(is_paused: bool, now: Instant) -> Self {
            if is_paused {
                Clock::Paused(now)
            } else {
                Clock::Real
            }
        }

        fn at(self, real: Instant) -> Instant {
            match self {
                Clock::Real => real,
                Clock::Paused(instant) => instant,
                Clock::Resumed { said, at } => said + real.saturating_duration_since(at),
            }
        }
    }

    /// Makes `clock` that of this thread. The one before.
    pub(crate) fn replace(clock: Clock) -> Clock {
        CLOCK.replace(clock)
    }

    /// What the clock of the executor that runs on this thread says; the system's if there is none.
    #[inline]
    pub(crate) fn now() -> Instant {
        CLOCK.get().at(real())
    }

    /// What that clock says at the `real` moment, now or to come, if it goes on as it does.
    #[inline]
    pub(crate) fn at(real: Instant) -> Instant {
        CLOCK.get().at(real)
    }

    /// The real moment at which that clock says `instant`, at the earliest that of its last change;
    /// none if it is paused and will not get there by itself.
    #[inline]
    pub(crate) fn real_time_of(instant: Instant) -> Option<Instant> {
        match CLOCK.get() {
            Clock::Real => Some(instant),
            Clock::Paused(now) => (instant <= now).then(real),
            Clock::Resumed { said, at } => {
                let ahead = instant.saturating_duration_since(said);
                Some(at.checked_add(ahead).unwrap_or(instant))
            }
        }
    }

    /// Whether that clock is paused.
    #[inline]
    pub(crate) fn is_paused() -> bool {
        matches!(CLOCK.get(), Clock::Paused(_))
    }

    /// Whether that clock has always been the system's.
    pub(crate) fn is_real() -> bool {
        matches!(CLOCK.get(), Clock::Real)
    }

    /// Has it stand still, or moves it on to `instant` if it is paused and that is to come.
    pub(crate) fn pause_at(instant: Instant) {
        CLOCK.set(Clock::Paused(instant.max(now())));
    }

    /// Has it go on from where it was paused.
    pub(crate) fn resume() {
        if let Clock::Paused(said) = CLOCK.get() {
            let at = real();
            CLOCK.set(Clock::Resumed { said, at });
        }
    }
}

pub(crate) use reading::*;

/// A moment of the clock of executors, and its date.
pub(crate) type Dated = (Instant, SystemTime);

/// The date by the clock of the executor that runs on this thread.
pub(crate) fn date() -> SystemTime {
    // The same for all clocks that are not the system's, so that they go on evenly.
    static DATED: OnceLock<Dated> = OnceLock::new();
    match is_real() {
        true => SystemTime::now(),
        false => date_of(now(), *DATED.get_or_init(|| (real(), SystemTime::now()))),
    }
}

/// The date of `now`.
pub(crate) fn date_of(now: Instant, (instant, date): Dated) -> SystemTime {
    match now.checked_duration_since(instant) {
        Some(later) => date + later,
        None => date - (instant - now),
    }
}
