//! Servers and clients of this crate against each other.

mod ends;
mod ignorant;
mod peer;
mod requests;
#[cfg(feature = "simulation")]
mod simulated;
