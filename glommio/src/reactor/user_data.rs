//! The `user_data` of submissions: what their completions are known by.
//!
//! The kernel looks for a poll to cancel in one of up to 256 lists, the newest first. Which list a poll
//! is in, the first bits of its `user_data` times [`KERNEL_MULTIPLIER`] say (`hash_64` of Linux). With
//! keys as they are, polls that were submitted one after the other lie in lists that have nothing in
//! common, and each cancellation walks through memory that no cache holds: 3.5 µs of the 37 µs that a
//! slow client of HTTP took, with 10,000 of them. But what was submitted together often ends
//! together: clients that are cut off for their silence, connections of a peer that has left. So runs
//! of 32 keys share a list, and the first cancellation of a run brings it into the cache for the
//! others. Runs take turns in the lists, however many there are, which therefore are about as long
//! as each other. A kernel that does it in another way finds the same operations, at the old price.

/// Names one operation for as long as it is in the table; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpKey {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Of submissions whose completion says nothing.
pub(super) const IGNORED: u64 = OpKey::NONE.user_data();
/// The end of the slice.
pub(super) const PREEMPTION: u64 = OpKey::unused(1).user_data();
/// The wake-up descriptor.
pub(super) const WAKE_UP: u64 = OpKey::unused(2).user_data();
/// The end of a long sleep.
pub(super) const SLEEP_TIMEOUT: u64 = OpKey::unused(3).user_data();

/// Indexes stay below this.
pub(super) const MAX_IN_FLIGHT: usize = u32::MAX as usize;

/// A run is of so many bits of the generation: 32 keys.
const RUN_BITS: u32 = 5;

/// `GOLDEN_RATIO_64` of Linux.
const KERNEL_MULTIPLIER: u64 = 0x61c8_8646_80b5_83eb;

/// Multiplied by the kernel's, it is 1.
const INVERSE: u64 = inverse(KERNEL_MULTIPLIER);

impl OpKey {
    /// Of no operation: generations start at 1.
    pub(super) const NONE: OpKey = OpKey::unused(0);

    const fn unused(index: u32) -> Self {
        OpKey {
            index,
            generation: 0,
        }
    }

    pub(super) const fn user_data(self) -> u64 {
        // The number of the run is first, its lowest bit before the others: however many bits the
        // kernel takes, the next run has others.
        let high = self.generation.reverse_bits().rotate_left(RUN_BITS);
        (((high as u64) << 32) | self.index as u64).wrapping_mul(INVERSE)
    }

    pub(super) const fn from_user_data(user_data: u64) -> Self {
        let key = user_data.wrapping_mul(KERNEL_MULTIPLIER);
        let high = (key >> 32) as u32;
        OpKey {
            index: key as u32,
            generation: high.rotate_right(RUN_BITS).reverse_bits(),
        }
    }
}

/// The number that `odd` is to be multiplied by for 1, modulo 2⁶⁴: by Newton's method, which doubles
/// the bits that are right.
const fn inverse(odd: u64) -> u64 {
    // Three bits of it are right: the square of an odd number is 1 modulo 8.
    let mut inverse = odd;
    let mut bits = 3;
    while bits < u64::BITS {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
        bits *= 2;
    }
    inverse
}

const _: () = assert!(INVERSE.wrapping_mul(KERNEL_MULTIPLIER) == 1);
const _: () = assert!(
    IGNORED == 0,
    "submissions that were given no name are ignored"
);

#[cfg(test)]
mod tests {
    use super::*;

    /// The list that Linux keeps an operation in, of `1 << bits`.
    fn list(generation: u32, bits: u32) -> usize {
        // Indexes are used again and again, in any order.
        let index = generation.wrapping_mul(0x9e37_79b9) % 10_000;
        let user_data = OpKey { index, generation }.user_data();
        (user_data.wrapping_mul(KERNEL_MULTIPLIER) >> (u64::BITS - bits)) as usize
    }

    #[test]
    fn what_is_submitted_together_shares_a_list_and_lists_are_equally_long() {
        for bits in 1..=8 {
            // Also where generations begin again.
            for first_run in [0u32, 77, (1 << (32 - RUN_BITS)) - 100] {
                let mut lengths = vec![0; 1 << bits];
                for run in 0..2 << bits {
                    let first = first_run.wrapping_add(run) << RUN_BITS;
                    let lists = (0..1 << RUN_BITS).map(|it| list(first | it, bits));
                    lists.for_each(|it| lengths[it] += 1);
                    assert_eq!(list(first, bits), list(first | 31, bits));
                }
                assert_eq!(lengths, vec![2 << RUN_BITS; 1 << bits]);
            }
        }
    }
}
