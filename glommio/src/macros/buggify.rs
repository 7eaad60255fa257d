//! Faults in the code of users, for simulations.

use crate::sys::door::{count_sometimes, is_buggified as is_buggified_here};

/// True now and then in a simulation (feature `simulation`), as its seed decides, and never elsewhere: a
/// place for a fault that only the program itself can cause, such as a queue that is taken for full, a short
/// timeout or an early flush.
///
/// Each place is active in a quarter of the seeds, and is then true with a probability of a quarter, or with that
/// which is given. Without the feature `simulation` it is the constant `false`.
///
/// The idea is FoundationDB's (Zhou et al., *FoundationDB: A Distributed Unbundled Transactional Key Value
/// Store*, SIGMOD 2021, section 4).
///
/// # Examples
///
/// ```
/// fn batch_bytes() -> usize {
///     if glommio::buggify!() { 1 } else { 1 << 20 }
/// }
/// assert_eq!(batch_bytes(), 1 << 20, "no simulation runs here");
///
/// let retries_at_once = glommio::buggify!(0.01);
/// assert!(!retries_at_once);
/// ```
#[macro_export]
macro_rules! buggify {
    ($($probability:expr)?) => {{
        let place = (::core::file!(), ::core::line!(), ::core::column!());
        let probabilities: &[f64] = &[$($probability)?];
        $crate::__buggify::is_buggified(place, probabilities.first().copied())
    }};
}

/// What [`buggify!`](crate::buggify) expands to.
#[inline]
pub fn is_buggified(place: (&'static str, u32, u32), probability: Option<f64>) -> bool {
    is_buggified_here(place, probability.unwrap_or(0.25))
}

/// Notes in a simulation (feature `simulation`) whether something is true that has to be true in some seeds: a case that a test
/// is to reach, such as a follower that takes over, or a queue that is full. Without a simulation it does nothing.
///
/// It never fails. How often it was true is in `simulation::Report::coverage`, and in how many seeds in
/// `simulation::Summary::coverage`; `simulation::Summary::never` has those that were reached and never true.
///
/// # Examples
///
/// ```
/// # let (retries, limit) = (3, 3);
/// glommio::sometimes!(retries == limit, "the last attempt");
/// ```
#[macro_export]
macro_rules! sometimes {
    ($condition:expr, $name:expr $(,)?) => {
        $crate::__buggify::sometimes($name, $condition)
    };
}

/// What [`sometimes!`](crate::sometimes) expands to.
#[inline]
pub fn sometimes(name: &'static str, is_true: bool) {
    count_sometimes(name, is_true);
}
