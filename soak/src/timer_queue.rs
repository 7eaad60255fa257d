//! Which timer queue a build soaks: it is chosen by a feature, so one binary has one of the two.

/// The timer queue of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerQueue {
    Wheel,
    Classic,
}

impl TimerQueue {
    /// That of this build.
    pub(crate) const OURS: TimerQueue = if cfg!(feature = "timing-wheel") {
        TimerQueue::Wheel
    } else {
        TimerQueue::Classic
    };

    pub(crate) const fn other(self) -> TimerQueue {
        match self {
            TimerQueue::Wheel => TimerQueue::Classic,
            TimerQueue::Classic => TimerQueue::Wheel,
        }
    }

    /// What `--version` of its build prints after the program's name.
    pub(crate) const fn version(self) -> &'static str {
        match self {
            TimerQueue::Wheel => concat!(env!("CARGO_PKG_VERSION"), " (staged timing wheel)"),
            TimerQueue::Classic => concat!(env!("CARGO_PKG_VERSION"), " (classic ordered map)"),
        }
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            TimerQueue::Wheel => "staged timing wheel",
            TimerQueue::Classic => "classic ordered map",
        }
    }
}

/// What `--version` of this build prints after the program's name.
pub(crate) const VERSION: &str = TimerQueue::OURS.version();
