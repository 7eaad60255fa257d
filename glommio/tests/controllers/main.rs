//! The deadline queue as programs use it. What its controller decides is tested beside it, with
//! time by hand.

#[macro_use(run_test)]
extern crate glommio_macros;
#[path = "../common/mod.rs"]
mod common;

mod deadline_queue;
