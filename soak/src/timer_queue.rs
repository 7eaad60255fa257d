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

    pub(crate) const fn label(self) -> &'static str {
        match self {
            TimerQueue::Wheel => "staged timing wheel",
            TimerQueue::Classic => "classic ordered map",
        }
    }
}

/// What `--version` prints after the program's name.
pub(crate) const VERSION: &str = if cfg!(feature = "timing-wheel") {
    concat!(env!("CARGO_PKG_VERSION"), " (staged timing wheel)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (classic ordered map)")
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_names_the_timer_queue() {
        let named = format!("({})", TimerQueue::OURS.label());
        assert!(VERSION.ends_with(&named), "{VERSION}");
    }
}
