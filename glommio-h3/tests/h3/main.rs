//! Servers and clients of this crate against each other.

mod ends;
mod peer;
mod requests;
