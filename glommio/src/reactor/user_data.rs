//! The `user_data` of submissions: what their completions are known by.

/// Names one operation for as long as it is in the table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Of submissions whose completion says nothing.
pub(super) const IGNORED: u64 = 0;
/// The end of the slice.
pub(super) const PREEMPTION: u64 = u64::MAX;
/// The wake-up descriptor.
pub(super) const WAKE_UP: u64 = u64::MAX - 1;
/// The end of a long sleep.
pub(super) const SLEEP_TIMEOUT: u64 = u64::MAX - 2;

/// Indexes stay below this, so that no key collides with the names above.
pub(super) const MAX_IN_FLIGHT: usize = (u32::MAX - 2) as usize;

impl OpKey {
    /// Of no operation: generations start at 1.
    pub(super) const NONE: OpKey = OpKey {
        index: 0,
        generation: 0,
    };

    pub(super) fn user_data(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.index)
    }

    pub(super) fn from_user_data(user_data: u64) -> Self {
        OpKey {
            index: user_data as u32,
            generation: (user_data >> 32) as u32,
        }
    }
}
