//! Where the peers of a mesh wait for each other.
//!
//! ```text
//!   Gathering ──all have joined──▶ Complete
//!     ▲    │
//!     └────┘ join, or give up joining
//! ```
//!
//! The last peer to join makes the channels of all. Each peer takes its ends away when it has been
//! woken; the place of one that gives up is dropped, which closes its channels. That, and every
//! waker, is for when the lock is released.

use std::io;
use std::sync::PoisonError;

use crate::channels::shared_channel::{SharedReceiver, SharedSender, new_bounded};
use crate::error::GlommioError;
use crate::loom::sync::{Mutex, MutexGuard};
use crate::waiters::Waiters;

/// What a peer does in a [`PartialMesh`](super::PartialMesh).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends to all consumers.
    Producer,
    /// It receives from all producers.
    Consumer,
    /// The role of all peers of a [`FullMesh`](super::FullMesh). In a [`PartialMesh`](super::PartialMesh) such a peer takes part in
    /// joining, and has no channels.
    Both,
}

/// The answers of an adapter.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub(super) connects: fn(&Role, &Role) -> bool,
    pub(super) is_full: bool,
}

/// See the module.
pub(super) struct Rendezvous<T: Send> {
    nr_peers: usize,
    stage: Mutex<Stage<T>>,
    waiters: Waiters,
}

enum Stage<T: Send> {
    /// Some are missing.
    Gathering(Vec<Peer>),
    /// The places of those who have not taken theirs yet.
    Complete(Vec<(Peer, Place<T>)>),
}

#[derive(Clone, Copy)]
struct Peer {
    executor: usize,
    role: Role,
}

/// What a peer gets. Channels that are none are placeholders.
pub(super) struct Place<T: Send> {
    /// Its rank among all peers.
    pub(super) peer_id: usize,
    /// Its rank among those with the same role.
    pub(super) role_id: usize,
    pub(super) senders: Vec<Option<SharedSender<T>>>,
    pub(super) receivers: Vec<Option<SharedReceiver<T>>>,
}

impl<T: Send> Rendezvous<T> {
    pub(super) fn new(nr_peers: usize) -> Self {
        Rendezvous {
            nr_peers,
            stage: Mutex::new(Stage::Gathering(Vec::new())),
            waiters: Waiters::new(),
        }
    }

    /// How many peers have joined.
    pub(super) fn joined(&self) -> usize {
        match &*self.lock() {
            Stage::Gathering(peers) => peers.len(),
            Stage::Complete(_) => self.nr_peers,
        }
    }

    /// Joins.
    ///
    /// # Errors
    ///
    /// All have joined.
    ///
    /// # Panics
    ///
    /// This executor has, and others have not.
    pub(super) fn enter(
        &self,
        executor: usize,
        role: Role,
    ) -> Result<Membership<'_, T>, GlommioError<()>> {
        let mut stage = self.lock();
        let peers = match &mut *stage {
            Stage::Gathering(peers) if peers.len() < self.nr_peers => peers,
            _ => {
                let full = io::Error::other("The channel mesh is full.");
                return Err(GlommioError::IoError(full));
            }
        };
        let is_known = peers.iter().any(|peer| peer.executor == executor);
        if !is_known {
            peers.push(Peer { executor, role });
        }
        drop(stage);
        assert!(!is_known, "Should not join a mesh more than once.");
        Ok(Membership {
            rendezvous: self,
            executor,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Stage<T>> {
        // What may panic under the lock leaves the stage as it was: memory for channels, of an
        // absurd size.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One peer that has joined. Dropped before it has got its place, it gives that up.
pub(super) struct Membership<'a, T: Send> {
    rendezvous: &'a Rendezvous<T>,
    executor: usize,
}

impl<T: Send> Membership<'_, T> {
    /// Makes the channels if all have joined.
    pub(super) fn complete(&self, links: Links, channel_size: usize) {
        let rendezvous = self.rendezvous;
        let mut stage = rendezvous.lock();
        match &mut *stage {
            Stage::Gathering(peers) if peers.len() == rendezvous.nr_peers => {
                let peers = peers.clone();
                *stage = Stage::Complete(places(peers, links, channel_size));
            }
            _ => return,
        }
        drop(stage);
        rendezvous.waiters.notify_all();
    }

    /// Waits until all have joined.
    pub(super) async fn place(&self) -> Place<T> {
        self.rendezvous.waiters.wait(|| self.take()).await
    }

    fn take(&self) -> Option<Place<T>> {
        match &mut *self.rendezvous.lock() {
            Stage::Gathering(_) => None,
            Stage::Complete(places) => {
                let mine = |(peer, _): &(Peer, _)| peer.executor == self.executor;
                let index = places.iter().position(mine)?;
                Some(places.swap_remove(index).1)
            }
        }
    }
}

impl<T: Send> Drop for Membership<'_, T> {
    fn drop(&mut self) {
        if let Stage::Gathering(peers) = &mut *self.rendezvous.lock() {
            peers.retain(|peer| peer.executor != self.executor);
        }
        drop(self.take());
    }
}

/// The places of all `peers`, with channels between them.
fn places<T: Send>(
    mut peers: Vec<Peer>,
    links: Links,
    channel_size: usize,
) -> Vec<(Peer, Place<T>)> {
    peers.sort_by_key(|peer| peer.executor);
    let role_id = |peer_id: usize| {
        let same = |peer: &&Peer| peer.role == peers[peer_id].role;
        peers[..peer_id].iter().filter(same).count()
    };
    let place = |peer_id| Place {
        peer_id,
        role_id: role_id(peer_id),
        senders: Vec::new(),
        receivers: Vec::new(),
    };
    let mut places: Vec<_> = (0..peers.len()).map(place).collect();
    for from in 0..peers.len() {
        for to in 0..peers.len() {
            let is_connected = from != to && (links.connects)(&peers[from].role, &peers[to].role);
            if is_connected {
                let (sender, receiver) = new_bounded(channel_size);
                places[from].senders.push(Some(sender));
                places[to].receivers.push(Some(receiver));
            } else if links.is_full {
                places[from].senders.push(None);
                places[to].receivers.push(None);
            }
        }
    }
    peers.into_iter().zip(places).collect()
}
