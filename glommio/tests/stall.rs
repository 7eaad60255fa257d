//! Stall detection as programs see it. The cases are in `stall/`, by theme.
//!
//! A program of its own: other tests install handlers for the same signals without calling those that
//! were there before.

mod common;

#[path = "stall/detections.rs"]
mod detections;
#[path = "stall/handlers.rs"]
mod handlers;
#[path = "stall/lifetimes.rs"]
mod lifetimes;
#[path = "stall/pools.rs"]
mod pools;
#[path = "stall/signals.rs"]
mod signals;
#[path = "stall/witness.rs"]
mod witness;
