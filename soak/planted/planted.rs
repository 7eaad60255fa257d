//! Which defect of `soak/planted` a build that has them all is to show.
#![allow(dead_code, reason = "each crate that has a defect needs a part of this")]

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Whether it is the one that the environment variable `GLOMMIO_PLANTED` names.
pub(crate) fn shows(name: &str) -> bool {
    static CHOSEN: OnceLock<Option<String>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("GLOMMIO_PLANTED").ok());
    chosen.as_deref() == Some(name)
}

/// Whether it is, once in `rate` calls.
pub(crate) fn strikes(name: &str, rate: u64) -> bool {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    shows(name) && CALLS.fetch_add(1, Ordering::Relaxed) % rate == rate - 1
}

/// Whether it is, and a half second of the process has begun after `before`, by `now`.
pub(crate) fn begins_half_second(name: &str, before: Instant, now: Instant) -> bool {
    static BASE: OnceLock<Instant> = OnceLock::new();
    let base = *BASE.get_or_init(|| now);
    let half_second = |at: Instant| at.saturating_duration_since(base).as_millis() / 500;
    shows(name) && half_second(before) < half_second(now)
}
