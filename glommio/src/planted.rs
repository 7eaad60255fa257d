//! Defects that a build can be given, so that the soak can be seen to catch each of them.
//!
//! `--cfg planted="NAME"` builds the library with one of them, `--cfg planted="any"` with all, of
//! which the environment variable `GLOMMIO_PLANTED` names the one to show. `soak/planted` does so,
//! and lists them. In an ordinary build [`planted!`] is `false`, and nothing of what it guards is
//! left.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Whether this build shows the defect of that name; with a rate, whether it does so this time.
macro_rules! planted {
    ($name:tt) => {
        cfg!(planted = $name) || cfg!(planted = "any") && $crate::planted::is_chosen($name)
    };
    ($name:tt, one in $rate:literal) => {
        (planted!($name)) && $crate::planted::strikes($rate)
    };
}

pub(crate) use planted;

/// Whether the defect is the one to show.
#[cfg(planted = "any")]
pub(crate) fn is_chosen(name: &str) -> bool {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("GLOMMIO_PLANTED").ok());
    chosen.as_deref() == Some(name)
}

#[cfg(not(planted = "any"))]
pub(crate) const fn is_chosen(_name: &str) -> bool {
    false
}

/// True once in `rate` calls.
pub(crate) fn strikes(rate: u64) -> bool {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed) % rate == rate - 1
}

/// Whether a half second of the process has begun after `before`, by `now`.
pub(crate) fn begins_half_second(before: Instant, now: Instant) -> bool {
    static BASE: OnceLock<Instant> = OnceLock::new();
    let base = *BASE.get_or_init(|| now);
    let half_second = |at: Instant| at.saturating_duration_since(base).as_millis() / 500;
    half_second(before) < half_second(now)
}
