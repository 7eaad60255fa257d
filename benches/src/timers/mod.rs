//! The timer queues side by side: one interface to drive them, deadlines and wakers to feed them, and
//! the tables and plots that a run leaves in `target/timers/`.

mod chart;
mod criteria;
mod plot;
mod queues;
mod report;
mod workload;

pub use self::{
    chart::{Chart, Panel},
    criteria::{Bench, run},
    plot::{Diagram, DiagramPanel, DrawResult, Line, draw},
    queues::{Floor, OURS, Queue, TimerQueue},
    report::target_directory,
    workload::{Churn, Deadlines, Random, Rotation, deadlines, fill, waker, wakers},
};
