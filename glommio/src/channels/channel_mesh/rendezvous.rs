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
//!
//! A join uses a handle up. When there is none left while peers are missing, no more can come: those
//! that wait fail.

use std::io;
use std::sync::PoisonError;

use crate::channels::shared_channel::{SharedReceiver, SharedSender, new_bounded};
use crate::error::GlommioError;
use crate::loom::sync::{Arc, Mutex, MutexGuard};
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

/// A peer that may join, or several, as a clone is one more.
pub(super) struct Handle<T: Send>(pub(super) Arc<Rendezvous<T>>);

impl<T: Send> Handle<T> {
    pub(super) fn new(nr_peers: usize) -> Self {
        let meeting = Meeting {
            handles: 1,
            stage: Stage::Gathering(Vec::new()),
        };
        Handle(Arc::new(Rendezvous {
            nr_peers,
            meeting: Mutex::new(meeting),
            waiters: Waiters::new(),
        }))
    }
}

impl<T: Send> Clone for Handle<T> {
    fn clone(&self) -> Self {
        self.0.lock().handles += 1;
        Handle(Arc::clone(&self.0))
    }
}

impl<T: Send> Drop for Handle<T> {
    fn drop(&mut self) {
        let mut meeting = self.0.lock();
        meeting.handles -= 1;
        let was_last = meeting.handles == 0;
        drop(meeting);
        if was_last {
            self.0.waiters.notify_all();
        }
    }
}

/// See the module.
pub(super) struct Rendezvous<T: Send> {
    nr_peers: usize,
    meeting: Mutex<Meeting<T>>,
    waiters: Waiters,
}

struct Meeting<T: Send> {
    /// How many there are, without those that were used up.
    handles: usize,
    stage: Stage<T>,
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
    /// How many peers have joined.
    pub(super) fn joined(&self) -> usize {
        match &self.lock().stage {
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
        let mut meeting = self.lock();
        let peers = match &mut meeting.stage {
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
        drop(meeting);
        assert!(!is_known, "Should not join a mesh more than once.");
        Ok(Membership {
            rendezvous: self,
            executor,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Meeting<T>> {
        // What may panic under the lock leaves the stage as it was: memory for channels, of an
        // absurd size.
        self.meeting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One peer that has joined. Dropped before it has got its place, it gives that up.
pub(super) struct Membership<'a, T: Send> {
    rendezvous: &'a Rendezvous<T>,
    executor: usize,
}

impl<T: Send> Membership<'_, T> {
    /// Makes the channels if all have joined.
    pub(super) fn complete(&self, is_full: bool, channel_size: usize) {
        let rendezvous = self.rendezvous;
        let mut meeting = rendezvous.lock();
        match &mut meeting.stage {
            Stage::Gathering(peers) if peers.len() == rendezvous.nr_peers => {
                let peers = peers.clone();
                meeting.stage = Stage::Complete(places(peers, is_full, channel_size));
            }
            _ => return,
        }
        drop(meeting);
        rendezvous.waiters.notify_all();
    }

    /// Waits until all have joined.
    ///
    /// # Errors
    ///
    /// Some are missing, and will be.
    pub(super) async fn place(&self) -> Result<Place<T>, GlommioError<()>> {
        self.rendezvous.waiters.wait(|| self.take()).await
    }

    fn take(&self) -> Option<Result<Place<T>, GlommioError<()>>> {
        let mut meeting = self.rendezvous.lock();
        let Meeting { handles, stage } = &mut *meeting;
        match stage {
            Stage::Gathering(_) if *handles > 0 => None,
            Stage::Gathering(_) => {
                let text = "a peer of the channel mesh ended before it joined";
                let error = io::Error::new(io::ErrorKind::BrokenPipe, text);
                Some(Err(GlommioError::IoError(error)))
            }
            Stage::Complete(places) => {
                let mine = |(peer, _): &(Peer, _)| peer.executor == self.executor;
                let index = places.iter().position(mine)?;
                Some(Ok(places.swap_remove(index).1))
            }
        }
    }
}

impl<T: Send> Drop for Membership<'_, T> {
    fn drop(&mut self) {
        if let Stage::Gathering(peers) = &mut self.rendezvous.lock().stage {
            peers.retain(|peer| peer.executor != self.executor);
        }
        drop(self.take());
    }
}

/// The places of all `peers`, with channels between them.
fn places<T: Send>(
    mut peers: Vec<Peer>,
    is_full: bool,
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
            let is_led = (peers[from].role, peers[to].role) == (Role::Producer, Role::Consumer);
            if from != to && (is_full || is_led) {
                let (sender, receiver) = new_bounded(channel_size);
                places[from].senders.push(Some(sender));
                places[to].receivers.push(Some(receiver));
            } else if is_full {
                places[from].senders.push(None);
                places[to].receivers.push(None);
            }
        }
    }
    peers.into_iter().zip(places).collect()
}
