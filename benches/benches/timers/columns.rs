//! The queues that are compared, by name.

use std::task::Waker;

use staged_wheel::{ClassicQueue, StagedWheel};

use crate::cases::Case;
use crate::exactness::{self, Exactness};
use crate::figures::Figures;
use crate::queues::{Floor, Queue, TimerQueue};

/// A column of the tables.
#[derive(Clone, Copy)]
pub struct Column {
    /// On the command line and above the column.
    pub name: &'static str,
    /// Whether it is one of this repository.
    pub is_ours: bool,
    /// Measures it.
    pub run: fn(Case) -> Figures,
    /// Observes when it fires what. `None` where nothing ever fires.
    pub observe: Option<fn() -> Exactness>,
}

/// What the others are compared with.
pub const YARDSTICK: &str = <ClassicQueue<Waker> as Queue>::NAME;

/// All of them, with those of others, in the order of the tables.
pub fn all(peers: impl IntoIterator<Item = Column>) -> Vec<Column> {
    let mut columns = vec![
        timer_queue::<ClassicQueue<Waker>>(true),
        timer_queue::<StagedWheel<Waker>>(true),
    ];
    columns.extend(peers);
    columns.push(Column {
        name: Floor::NAME,
        is_ours: false,
        run: |case| case.run_unordered::<Floor>(),
        observe: None,
    });
    columns
}

/// The column of a timer queue.
pub fn timer_queue<Q: TimerQueue>(is_ours: bool) -> Column {
    Column {
        name: Q::NAME,
        is_ours,
        run: |case| case.run::<Q>(),
        observe: Some(exactness::observe::<Q>),
    }
}
