//! The deadline queue as programs use it. What its controller decides is tested beside it, with time by hand.

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "used in part")]
mod hooks;
#[path = "../common/polled.rs"]
#[allow(dead_code, reason = "used in part")]
mod polled;

mod deadline_queue;
