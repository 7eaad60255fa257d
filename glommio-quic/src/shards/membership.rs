//! Which shard a packet is for, and how it gets there.

use super::ID_LEN;
use crate::socket::Datagram;
use atomic_waker::AtomicWaker;
use concurrent_queue::ConcurrentQueue;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Datagrams that wait for one shard. Further ones are lost.
const INBOX: usize = 1024;
/// How many a shard takes at a time.
const BATCH: usize = 64;

pub(super) struct Group {
    inboxes: Vec<Inbox>,
}

struct Inbox {
    datagrams: ConcurrentQueue<Datagram>,
    shard: AtomicWaker,
}

impl Group {
    pub(super) fn new(count: usize) -> Group {
        let inbox = || Inbox {
            datagrams: ConcurrentQueue::bounded(INBOX),
            shard: AtomicWaker::new(),
        };
        Group {
            inboxes: (0..count).map(|_| inbox()).collect(),
        }
    }
}

/// What makes an endpoint one of the shards of a group. Dropped, nothing is passed on to it.
pub(crate) struct Membership {
    group: Arc<Group>,
    number: u8,
}

/// What has become of a datagram.
pub(crate) enum Passed {
    /// It is for this shard, as far as one can tell.
    Own(Datagram),
    On,
    /// The shard is gone, or has no space for it.
    Nowhere,
}

impl Membership {
    pub(super) fn new(group: Arc<Group>, number: u8) -> Membership {
        Membership { group, number }
    }

    fn inbox(&self) -> &Inbox {
        &self.group.inboxes[usize::from(self.number)]
    }

    pub(crate) fn pass_on(&self, datagram: Datagram) -> Passed {
        let other = match shard_of(&datagram.payload) {
            Some(number) if number != self.number => self.group.inboxes.get(usize::from(number)),
            Some(_) | None => None,
        };
        let Some(other) = other else {
            return Passed::Own(datagram);
        };
        match other.datagrams.push(datagram) {
            Ok(()) => {
                other.shard.wake();
                Passed::On
            }
            Err(_) => Passed::Nowhere,
        }
    }

    /// Waits for datagrams that other shards pass on. Each is taken when it is asked for.
    pub(crate) async fn receive(&self) -> impl Iterator<Item = Datagram> {
        let inbox = self.inbox();
        poll_fn(|cx| {
            inbox.shard.register(cx.waker());
            match inbox.datagrams.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        })
        .await;
        inbox.datagrams.try_iter().take(BATCH)
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.inbox().datagrams.close();
    }
}

/// The first byte of a connection ID that a shard has issued, if the packet carries one.
pub(super) fn shard_of(packet: &[u8]) -> Option<u8> {
    const LONG: u8 = 0x80;
    const TYPE: u8 = 0x30;
    const HANDSHAKE: u8 = 0x20;
    let first = *packet.first()?;
    if first & LONG == 0 {
        return packet.get(1).copied();
    }
    let is_ours = first & TYPE == HANDSHAKE && usize::from(*packet.get(5)?) == ID_LEN;
    is_ours.then(|| packet.get(6).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shard_has_issued_tells_the_shard() {
        assert_eq!(shard_of(&[0x40, 3, 9, 9]), Some(3));
        assert_eq!(shard_of(&[0x40]), None);
        assert_eq!(shard_of(&[]), None);
        let mut handshake = [0xe0, 0, 0, 0, 1, 8, 5, 9, 9];
        assert_eq!(shard_of(&handshake), Some(5));
        assert_eq!(shard_of(&handshake[..6]), None);
        handshake[5] = 9;
        assert_eq!(shard_of(&handshake), None, "not as long as ours");
        assert_eq!(
            shard_of(&[0xc0, 0, 0, 0, 1, 8, 5, 9, 9]),
            None,
            "the client's own choice"
        );
    }
}
