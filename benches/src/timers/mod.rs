//! The timer queues side by side: one interface to drive them, deadlines and wakers to feed them, and
//! the tables and plots that a run leaves in `target/timers/`.

mod chart;
mod plot;
mod queues;
mod report;

pub use self::{
    chart::{Chart, Panel},
    queues::{Queue, deadlines, waker},
    report::{criterion, summarize},
};
