//! Which timer queue a build soaks: it is chosen by a feature, so one binary has one of the two.

pub(crate) const IS_WHEEL: bool = cfg!(feature = "timing-wheel");

/// What the timer queue of this build is called, and that of the other one.
pub(crate) const OURS: &str = NAMES[!IS_WHEEL as usize];
pub(crate) const OTHERS: &str = NAMES[IS_WHEEL as usize];

const NAMES: [&str; 2] = ["staged timing wheel", "classic ordered map"];

/// What `--version` prints after the program's name.
pub(crate) const VERSION: &str = if IS_WHEEL {
    concat!(env!("CARGO_PKG_VERSION"), " (staged timing wheel)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (classic ordered map)")
};
