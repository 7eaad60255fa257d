//! Moments that faults seek: what a node does where much depends on what happens next.

use std::cell::RefCell;

use super::ids::{NodeId, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Moment {
    /// A sync has begun.
    Syncing,
    /// A write has begun.
    Writing,
    /// A sync has succeeded.
    Synced,
    /// A rename has succeeded.
    Renamed,
    /// Something was sent, such as an acknowledgement.
    Sent,
}

impl Moment {
    /// Whether it is an operation in flight, which ends at a known time.
    pub(crate) fn is_in_flight(self) -> bool {
        matches!(self, Moment::Syncing | Moment::Writing)
    }
}

/// The moments of all nodes, if they are wanted.
#[derive(Default)]
pub(crate) struct Moments(RefCell<Option<Vec<(NodeId, Moment, Time)>>>);

impl Moments {
    /// Has moments be kept from now on.
    pub(crate) fn keep(&self) {
        self.0.replace(Some(Vec::new()));
    }

    /// A moment of a node has come. If it is an operation in flight, it takes so long.
    pub(crate) fn add(&self, node: NodeId, moment: Moment, takes: Time) {
        if let Some(moments) = &mut *self.0.borrow_mut() {
            moments.push((node, moment, takes));
        }
    }

    /// All since this was last called, at the present time.
    pub(crate) fn take(&self) -> Vec<(NodeId, Moment, Time)> {
        let mut moments = self.0.borrow_mut();
        moments.as_mut().map_or_else(Vec::new, std::mem::take)
    }
}
