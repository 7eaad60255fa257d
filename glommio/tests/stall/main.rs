//! Stall detection as programs see it. The cases are in `stall/`, by theme.
//!
//! A program of its own: other tests install handlers for the same signals without calling those
//! that were there before.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod detections;
mod handlers;
mod lifetimes;
mod names;
mod pools;
mod signals;
mod witness;
