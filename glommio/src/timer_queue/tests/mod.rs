//! The three queues against a sorted map, and their rooms against their own invariants.

mod differential;
mod model;
