//! The macros of the crate root, and what they expand to.

#![forbid(unsafe_code)]

mod task_local;
