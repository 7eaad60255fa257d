//! The deadline queue as programs use it. What its controller decides is tested beside it, with time by hand.

mod common;
#[path = "timer/hooks.rs"]
#[allow(dead_code, reason = "used in part")]
mod hooks;
#[path = "common/polled.rs"]
#[allow(dead_code, reason = "used in part")]
mod polled;

#[path = "controllers/deadline_queue.rs"]
mod deadline_queue;
