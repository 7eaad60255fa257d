//! What is promised, how it is checked while the run goes on, and the judgement at its end.

pub(crate) mod checker;
pub(crate) mod control;
pub(crate) mod executor_stats;
pub(crate) mod invariants;
pub(crate) mod library;
pub(crate) mod model;
pub(crate) mod peak;
pub(crate) mod probe;
pub(crate) mod timeliness;
pub(crate) mod verdict;
pub(crate) mod waker;
