//! What waits for sockets.
//!
//! A wait is an operation of a ring: a poll, an accept, a connect. It is looked at whenever its socket
//! has changed, and its end is told to the ring.

use std::collections::{BTreeMap, BTreeSet};

use super::ids::RingId;
use simulated_kernel::network::{Network, SocketId};

/// The waits of all nodes.
#[derive(Default)]
pub(super) struct Waits {
    waits: BTreeMap<(RingId, u64), Wait>,
    of_sockets: BTreeMap<SocketId, BTreeSet<(RingId, u64)>>,
}

/// An operation that waits for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) socket: SocketId,
    /// The events of `poll(2)` that it waits for; error and hang-up are always among them.
    pub(crate) events: i16,
    /// It goes on after an event.
    pub(crate) is_multi: bool,
    /// What it tells is the events. Otherwise the ring finds out.
    pub(crate) is_poll: bool,
}

impl Wait {
    /// The events that are there and that it waits for.
    fn ready(&self, network: &Network) -> i16 {
        let always = libc::POLLERR | libc::POLLHUP;
        network.readiness(self.socket) & (self.events | always)
    }
}

impl Waits {
    pub(super) fn wait(&mut self, ring: RingId, user_data: u64, wait: Wait) {
        self.waits.insert((ring, user_data), wait);
        let waits = self.of_sockets.entry(wait.socket).or_default();
        waits.insert((ring, user_data));
    }

    /// It waits no more. Whether it did.
    pub(super) fn end_wait(&mut self, ring: RingId, user_data: u64) -> bool {
        let Some(wait) = self.waits.remove(&(ring, user_data)) else {
            return false;
        };
        if let Some(waits) = self.of_sockets.get_mut(&wait.socket) {
            waits.remove(&(ring, user_data));
            if waits.is_empty() {
                self.of_sockets.remove(&wait.socket);
            }
        }
        true
    }

    /// The waits that have something to tell about the sockets that have changed: each with its events if
    /// it is a poll.
    pub(super) fn told(&mut self, network: &mut Network) -> Vec<Told> {
        let mut told = Vec::new();
        for socket in network.take_changed() {
            let Some(waits) = self.of_sockets.get(&socket) else {
                continue;
            };
            for &(ring, user_data) in waits {
                let wait = self.waits[&(ring, user_data)];
                let ready = wait.ready(network);
                if ready != 0 {
                    told.push(Told {
                        ring,
                        user_data,
                        events: wait.is_poll.then_some(ready),
                        is_over: !wait.is_multi,
                    });
                }
            }
        }
        for it in told.iter().filter(|it| it.is_over) {
            self.end_wait(it.ring, it.user_data);
        }
        told
    }
}

/// What a wait tells its ring.
pub(super) struct Told {
    pub(super) ring: RingId,
    pub(super) user_data: u64,
    pub(super) events: Option<i16>,
    pub(super) is_over: bool,
}
