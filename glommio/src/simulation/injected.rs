//! Faults that code of nodes has asked for.

use std::cell::RefCell;
use std::time::Duration;

use super::fault::Fault;

thread_local! {
    /// Each with its delay.
    static INJECTED: RefCell<Vec<(Duration, Fault)>> = const { RefCell::new(Vec::new()) };
}

pub(super) fn add(delay: Duration, fault: Fault) {
    INJECTED.with_borrow_mut(|injected| injected.push((delay, fault)));
}

/// All since this was last called.
pub(super) fn take() -> Vec<(Duration, Fault)> {
    INJECTED.take()
}
