//! What the adaptive rules go by: each with its reason, the value at which it is off, and the rows of
//! the benchmarks that it is for. Their figures are in `docs/tuning.md`.
//!
//! The members are constants. With the feature `bench` the environment variable `GLOMMIO_TUNING`
//! changes them, so that one binary measures a rule against its absence:
//!
//! ```text
//! GLOMMIO_TUNING=pace=off,far_sleeps=4,spin=30000
//! ```
//!
//! A value is `off` or a whole number: of nanoseconds for a time, a count otherwise.

#![forbid(unsafe_code)]

use std::time::Duration;

macro_rules! tuning {
    ($($(#[$doc:meta])* $name:ident: $of:ty = $default:expr, off = $off:expr;)*) => {
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) struct Tuning {
            $($(#[$doc])* pub(crate) $name: $of,)*
        }

        pub(crate) const DEFAULT: Tuning = Tuning { $($name: $default,)* };

        #[cfg(any(feature = "bench", test))]
        impl Tuning {
            const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Changes one member. False if there is none of that name, or it cannot have that value.
            fn set(&mut self, name: &str, value: &str) -> bool {
                match name {
                    $(stringify!($name) => match value {
                        "off" => {
                            self.$name = $off;
                            true
                        }
                        number => Value::set(&mut self.$name, number),
                    },)*
                    _ => false,
                }
            }
        }
    };
}

tuning! {
    /// How long a stretch of polls may take, going by the one before it, that shares a reading of the
    /// clock. Off: the clock is read after each poll.
    /// Rows: `expire-burst-cpu`.
    pace: Duration = Duration::from_micros(4), off = Duration::ZERO;

    /// How long a hurried round may last, beyond which it does not wait for the tasks that were woken.
    /// Off: no round is hurried.
    /// Rows: `burst-ping-p99`, `serve-echo:64-cpu`.
    hurried: Duration = Duration::from_micros(100), off = Duration::ZERO;

    /// Polling the clock for a near deadline may take the delay of a short sleep, divided by this: a sleep
    /// takes more CPU time. Off: every deadline that is not past is slept for.
    /// Rows: `expire-spread-cpu`.
    polled_delay_divisor: u32 = 2, off = u32::MAX;

    /// Sleeps in a row towards far deadlines before one timeout in the ring stands in for them, so that
    /// the kernel need not arm a timer for each. Off: each sleep has its own.
    /// Rows: `tcp-timeout`.
    far_sleeps: u32 = 16, off = u32::MAX;

    /// How long a batch of due timers waits at most for the tasks that the one before it has woken: a
    /// quarter of it by the clock, and then all of it in processor time.
    /// Expired sooner, batches would pile up in the task queues, and tasks that are woken by I/O
    /// meanwhile would come behind all of them. Other tasks that fill the queues must not keep timers
    /// waiting for long. Off: a batch in each turn.
    /// Rows: `burst-ping-p99`, `expire-burst-cpu`.
    batch_patience: Duration = Duration::from_millis(1), off = Duration::ZERO;

    /// How many wakes of timers ahead the memory of a task is asked for. Off: not at all.
    /// Rows: `expire-burst-cpu`.
    wakes_prefetched: usize = 6, off = 0;

    /// How many tasks ahead of the one that runs their memory is asked for: at most one. Off: none.
    /// Rows: `expire-burst-cpu`, `yield-queue`.
    tasks_prefetched: usize = 1, off = 0;

    /// So long after the start of a round a deadline is taken for one that has not passed, without
    /// a look at the clock: longer than rounds last where tasks let go of the thread. Off: the clock is
    /// read for every deadline.
    /// Rows: `timer-1k-5s`, `timer-10k-mixed`, `timeout-yield`.
    turn_time: Duration = Duration::from_millis(10), off = Duration::ZERO;

    /// Waits for a stream to become readable after which more are to be expected, so that one operation
    /// reports them all. Few connections live on after that to be closed soon. Off: an operation for each wait.
    /// Rows: `tcp`, `serve-echo:64-cpu`.
    often: u8 = 8, off = 0;

    /// Events without a read after which that operation ends: they cost time even if no task waits.
    /// Off: it goes on.
    /// Rows: `tcp-unread-cpu`.
    max_unread: u32 = 4, off = u32::MAX;

    /// How long a task at a shared channel looks again and again before it waits: longer than it takes
    /// to wake another processor, also where that is virtual. Off: it waits at once.
    /// Rows: `shared-rtt-apart`, `shared-stream-apart`.
    spin: Duration = Duration::from_micros(50), off = Duration::ZERO;
}

/// The tuning of this process: in ordinary builds a constant, which folds.
#[cfg(not(feature = "bench"))]
#[inline(always)]
pub(crate) const fn get() -> &'static Tuning {
    &DEFAULT
}

/// The tuning of this process, as `GLOMMIO_TUNING` says at the first call.
#[cfg(feature = "bench")]
#[inline]
pub(crate) fn get() -> &'static Tuning {
    static TUNING: std::sync::LazyLock<Tuning> = std::sync::LazyLock::new(|| {
        let wanted = std::env::var("GLOMMIO_TUNING").unwrap_or_default();
        parsed(&wanted).unwrap_or_else(|wrong| panic!("GLOMMIO_TUNING: {wrong}"))
    });
    &TUNING
}

/// The defaults with the members changed that `wanted` names.
#[cfg(any(feature = "bench", test))]
fn parsed(wanted: &str) -> Result<Tuning, String> {
    let mut tuning = DEFAULT;
    for item in wanted.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (name, value) = item.split_once('=').unwrap_or((item, ""));
        if !Tuning::NAMES.contains(&name) {
            let known = Tuning::NAMES.join(", ");
            return Err(format!("there is no `{name}`; there are {known}"));
        }
        if !tuning.set(name, value) {
            return Err(format!(
                "`{item}`: a value is `off`, or a whole number that the member can hold, of \
                 nanoseconds for a time"
            ));
        }
    }
    Ok(tuning)
}

/// A type of members.
#[cfg(any(feature = "bench", test))]
trait Value {
    /// False if `number` is none.
    fn set(&mut self, number: &str) -> bool;
}

#[cfg(any(feature = "bench", test))]
impl Value for Duration {
    fn set(&mut self, number: &str) -> bool {
        let nanoseconds = number.parse().map(Duration::from_nanos);
        nanoseconds.map(|it| *self = it).is_ok()
    }
}

#[cfg(any(feature = "bench", test))]
macro_rules! counts {
    ($($of:ty),*) => {
        $(impl Value for $of {
            fn set(&mut self, number: &str) -> bool {
                number.parse().map(|it| *self = it).is_ok()
            }
        })*
    };
}

#[cfg(any(feature = "bench", test))]
counts!(u8, u32, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wanted_is_the_default() {
        assert_eq!(parsed(""), Ok(DEFAULT));
        assert_eq!(parsed(" ,"), Ok(DEFAULT));
    }

    #[test]
    fn a_list_changes_what_it_names() {
        let wanted = Tuning {
            pace: Duration::ZERO,
            spin: Duration::from_micros(30),
            far_sleeps: 4,
            ..DEFAULT
        };
        assert_eq!(parsed("pace=off, spin=30000,far_sleeps=4"), Ok(wanted));
    }

    #[test]
    fn what_is_unknown_is_an_error_that_names_the_known() {
        let wrong = parsed("pace=0,speed=1").expect_err("there is none");
        assert!(wrong.contains("`speed`"), "{wrong}");
        for name in Tuning::NAMES {
            assert!(wrong.contains(name), "{wrong}");
        }
        for item in ["pace", "pace=", "pace=1us", "pace=-1", "often=256"] {
            let wrong = parsed(item).expect_err("no number of that kind");
            assert!(wrong.contains(&format!("`{item}`")), "{wrong}");
        }
    }

    #[test]
    fn each_member_can_be_off_and_is_on() {
        for name in Tuning::NAMES {
            let off = parsed(&format!("{name}=off"));
            assert!(off.is_ok_and(|off| off != DEFAULT), "{name}");
        }
    }
}
