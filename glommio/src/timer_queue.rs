//! The queue of the reactor's timers, as the feature `timing-wheel` says.

#![forbid(unsafe_code)]

pub(crate) use staged_wheel::Fired;
#[cfg(not(feature = "timing-wheel"))]
pub(crate) use staged_wheel::{ClassicHandle as Handle, ClassicQueue as TimerQueue};
#[cfg(feature = "timing-wheel")]
pub(crate) use staged_wheel::{StagedWheel as TimerQueue, TimerHandle as Handle};
