//! Faults in the code of users, for simulations.

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
    () => {
        $crate::buggify!(0.25)
    };
    ($probability:expr) => {
        $crate::__is_buggified(
            ::core::concat!(
                ::core::file!(),
                ":",
                ::core::line!(),
                ":",
                ::core::column!()
            ),
            $probability,
        )
    };
}

/// What [`buggify!`](crate::buggify) expands to.
#[doc(hidden)]
#[inline]
pub fn __is_buggified(place: &'static str, probability: f64) -> bool {
    crate::sys::door::is_buggified(place, probability)
}
