//! Chance, as far as programs ask for it.

#![forbid(unsafe_code)]

use std::hash::{BuildHasher, RandomState};

use crate::sys::door::draw_seed;

/// A number for the generator of a program, or for a name that no other process gives: another one each time,
/// from the system's source of chance. In a simulation (feature `simulation`) it is drawn from the seed.
///
/// It is not for keys and passwords.
///
/// # Examples
///
/// ```
/// let mut rng = fastrand::Rng::with_seed(glommio::rng_seed());
/// assert!(rng.u32(..10) < 10);
/// assert_ne!(glommio::rng_seed(), glommio::rng_seed());
/// ```
pub fn rng_seed() -> u64 {
    draw_seed().unwrap_or_else(|| RandomState::new().hash_one(0))
}
