//! Which shard a packet is for, and how it gets there.

use super::ids::ID_LEN;
use super::kept::Kept;
use super::order::{Order, Placed};
use super::program;
use crate::socket::Datagram;
use atomic_waker::AtomicWaker;
use concurrent_queue::ConcurrentQueue;
use std::future::poll_fn;
use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

/// Datagrams that wait for one shard. Further ones are lost.
const INBOX: usize = 1024;
/// How many a shard takes at a time.
const BATCH: usize = 64;
/// So many datagrams that come to another shard are no chance.
const GONE: usize = 16;

/// The shards of one address in this process.
pub(super) struct Group {
    /// The number of the first; those of the others follow.
    first: usize,
    inboxes: Vec<Inbox>,
    /// The kernel's order of their sockets, if no other process has sockets in it.
    order: Arc<Order>,
    /// Whether the sockets of another process, as many, come before these in the kernel's order.
    is_behind: AtomicBool,
    /// Datagrams that were passed on since the kernel finds the sockets so.
    passed_on: AtomicUsize,
}

struct Inbox {
    datagrams: ConcurrentQueue<Datagram>,
    shard: AtomicWaker,
    /// There is a shard that takes them, or will.
    is_open: AtomicBool,
}

impl Group {
    pub(super) fn new(first: usize, count: usize, is_behind: bool) -> Group {
        let inbox = || Inbox {
            datagrams: ConcurrentQueue::bounded(INBOX),
            shard: AtomicWaker::new(),
            is_open: AtomicBool::new(false),
        };
        Group {
            first,
            inboxes: (0..count).map(|_| inbox()).collect(),
            order: Arc::default(),
            is_behind: AtomicBool::new(is_behind),
            passed_on: AtomicUsize::new(0),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.inboxes.len()
    }

    fn inbox(&self, number: u8) -> Option<&Inbox> {
        let index = usize::from(number).checked_sub(self.first)?;
        self.inboxes.get(index)
    }

    pub(super) fn has(&self, number: u8) -> bool {
        self.inbox(number).is_some()
    }

    /// Makes a shard that there is none of yet, or none any more.
    ///
    /// Its place among them comes with it.
    pub(super) fn join(self: &Arc<Group>) -> Option<(usize, Membership)> {
        let takes = |inbox: &Inbox| !inbox.is_open.swap(true, Ordering::AcqRel);
        let index = self.inboxes.iter().position(takes)?;
        // What has come in the meantime is for connections that are lost.
        self.inboxes[index].datagrams.try_iter().for_each(drop);
        let number = u8::try_from(self.first + index).expect("the numbers were checked");
        let membership = Membership {
            group: Arc::clone(self),
            number,
            has_left: AtomicBool::new(false),
            kept: Weak::new(),
        };
        Some((index, membership))
    }

    /// Has the kernel find the sockets by the numbers of their shards. `socket` is any of them.
    pub(super) fn steer(&self, socket: &UdpSocket) -> io::Result<()> {
        self.order.with(|order| {
            let is_by_number = |(index, number)| index == usize::from(number);
            let by_number = order.iter().copied().enumerate().all(is_by_number);
            program::attach(socket, program::by_order((!by_number).then_some(order)))
        })
    }

    /// As [`steer`](Self::steer), with sockets that are [`Kept`], and as many of another process.
    pub(super) fn steer_kept(&self, kept: &Kept) -> io::Result<()> {
        let is_behind = self.is_behind.load(Ordering::Acquire);
        let program = program::shared(self.first, self.count(), is_behind);
        program::attach(kept.any(), program)
    }

    /// A datagram has come to the socket of another shard. That the kernel finds no socket where it looks
    /// for it says that the sockets that were before these are closed.
    fn has_passed_on(&self, kept: &Weak<Kept>) {
        if !self.is_behind.load(Ordering::Acquire)
            || self.passed_on.fetch_add(1, Ordering::AcqRel) + 1 != GONE
        {
            return;
        }
        if let Some(kept) = kept.upgrade() {
            self.is_behind.store(false, Ordering::Release);
            // Otherwise they are passed on as before.
            let _ = self.steer_kept(&kept);
        }
    }

    /// Binds the socket of the shard `number`.
    pub(super) fn bind(
        &self,
        number: u8,
        bind: impl FnOnce() -> io::Result<UdpSocket>,
    ) -> io::Result<Placed<UdpSocket>> {
        self.order.bind(number, bind)
    }
}

/// What makes an endpoint one of the shards of a group. Dropped, or [left](Self::leave), nothing is
/// passed on to it.
pub(crate) struct Membership {
    pub(super) group: Arc<Group>,
    pub(super) number: u8,
    has_left: AtomicBool,
    /// See [`Group::has_passed_on`].
    pub(super) kept: Weak<Kept>,
}

/// What has become of a datagram.
pub(crate) enum Passed {
    /// It is for this shard, as far as one can tell, or for one that is gone: this one tells the
    /// client so.
    Own(Datagram),
    On,
    /// The shard has no space for it.
    Nowhere,
}

impl Membership {
    fn inbox(&self) -> &Inbox {
        self.group.inbox(self.number).expect("it is one of them")
    }

    pub(crate) fn pass_on(&self, datagram: Datagram) -> Passed {
        let other = match shard_of(&datagram.payload) {
            Some(number) if number != self.number => self.group.inbox(number),
            Some(_) | None => None,
        };
        let Some(other) = other.filter(|other| other.is_open.load(Ordering::Acquire)) else {
            return Passed::Own(datagram);
        };
        match other.datagrams.push(datagram) {
            Ok(()) => {
                other.shard.wake();
                self.group.has_passed_on(&self.kept);
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

    /// The shard has ended.
    pub(crate) fn leave(&self) {
        if self.has_left.swap(true, Ordering::AcqRel) {
            return;
        }
        self.inbox().is_open.store(false, Ordering::Release);
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The first byte of a connection ID that a shard may have issued, if the packet carries one. The
/// first packets of a client carry one of its own choice, which any shard may take.
pub(super) fn shard_of(packet: &[u8]) -> Option<u8> {
    const LONG: u8 = 0x80;
    if packet.first()? & LONG == 0 {
        return packet.get(1).copied();
    }
    let is_as_long = usize::from(*packet.get(5)?) == ID_LEN;
    is_as_long.then(|| packet.get(6).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_id_tells_the_shard() {
        assert_eq!(shard_of(&[0x40, 3, 9, 9]), Some(3));
        assert_eq!(shard_of(&[0x40]), None);
        assert_eq!(shard_of(&[]), None);
        let mut long = [0xe0, 0, 0, 0, 1, 8, 5, 9, 9];
        assert_eq!(shard_of(&long), Some(5));
        long[0] = 0xc0;
        assert_eq!(shard_of(&long), Some(5), "an answer to a client, too");
        assert_eq!(shard_of(&long[..6]), None);
        long[5] = 9;
        assert_eq!(shard_of(&long), None, "not as long as ours");
    }

    #[test]
    fn who_leaves_twice_does_not_close_the_shard_that_was_made_again() {
        let group = Arc::new(Group::new(5, 2, false));
        let join = || group.join().map(|(_, membership)| membership);
        let (one, two) = (join().expect("one"), join().expect("two"));
        assert!(group.join().is_none());
        assert_eq!((one.number, two.number), (5, 6));
        one.leave();
        let again = join().expect("one again");
        assert_eq!(again.number, 5);
        drop(one);
        assert!(group.join().is_none(), "it is not free");
    }

    #[test]
    fn the_order_of_sockets_is_that_of_the_kernel_however_late_they_are_closed() {
        let group = Group::new(5, 3, false);
        let socket = || UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0));
        let [five, six, seven] = [5, 6, 7].map(|number| group.bind(number, socket).unwrap());
        let order = || group.order.with(<[u8]>::to_vec);
        // The shard was made again, and a task of the old one still has its socket.
        let again = group.bind(5, socket).unwrap();
        assert_eq!(order(), [5, 6, 7, 5]);
        drop(five.map(|socket| (socket, "of another type")));
        assert_eq!(order(), [5, 6, 7]);
        drop(six);
        assert_eq!(order(), [5, 7]);
        drop((again, seven));
        assert!(order().is_empty());
        assert!(
            group
                .bind(5, || Err(io::ErrorKind::AddrInUse.into()))
                .is_err()
        );
        assert!(order().is_empty());
    }
}
