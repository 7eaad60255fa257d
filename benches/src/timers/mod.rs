//! The timer queues side by side: one interface to drive them, deadlines and wakers to feed them, and
//! diagrams of what was measured.

mod plot;
mod queues;
mod workload;

pub use self::{
    plot::{Diagram, DiagramPanel, DrawResult, Line, draw},
    queues::{Floor, OURS, Queue, TimerQueue},
    workload::{Churn, Deadlines, Random, Rotation, deadlines, fill, waker, wakers},
};
