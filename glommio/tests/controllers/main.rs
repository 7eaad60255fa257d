//! The deadline queue as programs use it. What its controller decides is tested beside it, with
//! time by hand.

#[path = "../common/mod.rs"]
mod common;

mod deadline_queue;
