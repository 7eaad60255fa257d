//! Buffers that datagrams are received into.
//!
//! ```text
//!        free ──recv_many──▶ ReceivedDatagrams
//!         ▲                        │ dropped
//!         └────────────────────────┘ ──▶ wakes who found none free
//! ```
//!
//! The buffer that came back last is used first: it is in the cache still. Buffers are made when
//! none is free and there may be more, and kept.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use super::Ecn;
use crate::noted::{Awaited, waits_for};
use crate::panic::wake;
use crate::sys::datagrams::{BATCH, Headers, Message};
use crate::wait_queue::{WaitKey, WaitQueue, poll_waiting};

/// Buffers for [`UdpSocket::recv_many`](super::UdpSocket::recv_many), a given number of a given
/// size. Any number of sockets of an executor may share them; clones are the same pool.
///
/// Received datagrams keep their buffer until they are dropped. While none is free, nothing is received:
/// datagrams wait in the socket, whose receive buffer bounds them.
///
/// # Examples
///
/// ```
/// use glommio::net::{DatagramPool, UdpSocket};
///
/// # glommio::LocalExecutor::default().run(async {
/// let receiver = UdpSocket::bind("127.0.0.1:0")?;
/// let sender = UdpSocket::bind("127.0.0.1:0")?;
/// sender.send_to(b"hello", receiver.local_addr()?).await?;
///
/// let pool = DatagramPool::new(16, 1_500);
/// assert_eq!((pool.buffers(), pool.buffer_bytes()), (16, 1_500));
/// let mut received = Vec::new();
/// receiver.recv_many(&pool, &mut received).await?;
/// assert_eq!(pool.available(), 15);
/// received.clear();
/// assert_eq!(pool.available(), 16);
/// assert_eq!(pool.pauses(), 0);
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct DatagramPool(Rc<Shared>);

struct Shared {
    buffers: usize,
    buffer_bytes: usize,
    free: RefCell<Free>,
    pauses: Cell<u64>,
    /// Those that found none free. All are notified when one comes back.
    waiting: RefCell<WaitQueue>,
}

struct Free {
    /// The last is used first.
    buffers: Vec<Box<[u8]>>,
    /// How many may be made still.
    unmade: usize,
    headers: Box<Headers>,
}

/// What one call has received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Batch {
    /// How many buffers were used.
    pub(super) count: usize,
    /// Some were left: there was no more.
    pub(super) is_last: bool,
}

impl DatagramPool {
    /// A datagram of IPv4 or IPv6, with or without [GRO](super::UdpSocket::set_gro), is never longer:
    /// 65,535 bytes.
    pub const MAX_BYTES: usize = 65_535;

    /// At most `buffers` buffers of `buffer_bytes` each: at least one, of one byte or more, and of no
    /// more than [`MAX_BYTES`](Self::MAX_BYTES). They are made when they are needed for the first
    /// time, up to 32 at a time, and kept.
    pub fn new(buffers: usize, buffer_bytes: usize) -> DatagramPool {
        let buffers = buffers.max(1);
        DatagramPool(Rc::new(Shared {
            buffers,
            buffer_bytes: buffer_bytes.clamp(1, Self::MAX_BYTES),
            free: RefCell::new(Free {
                buffers: Vec::new(),
                unmade: buffers,
                headers: Headers::new(),
            }),
            pauses: Cell::new(0),
            waiting: RefCell::default(),
        }))
    }

    /// How many buffers there are, free or in use.
    pub fn buffers(&self) -> usize {
        self.0.buffers
    }

    /// The size of each in bytes. What is received is no longer.
    pub fn buffer_bytes(&self) -> usize {
        self.0.buffer_bytes
    }

    /// How many buffers are free now.
    pub fn available(&self) -> usize {
        let free = self.0.free.borrow();
        free.buffers.len() + free.unmade
    }

    /// How often a receive found no free buffer, and waited for one.
    pub fn pauses(&self) -> u64 {
        self.0.pauses.get()
    }

    /// Receives what is there into free buffers, behind what is in `received`: nothing if none is
    /// free.
    pub(super) fn receive(
        &self,
        fd: RawFd,
        received: &mut Vec<ReceivedDatagrams>,
    ) -> io::Result<Batch> {
        let mut free = self.0.free.borrow_mut();
        let Free {
            buffers,
            unmade,
            headers,
        } = &mut *free;
        while buffers.len() < BATCH && *unmade > 0 {
            // Behind those that were used before.
            buffers.insert(0, vec![0; self.0.buffer_bytes].into());
            *unmade -= 1;
        }
        if buffers.is_empty() {
            return Ok(Batch::default());
        }
        let unused = buffers.len().saturating_sub(BATCH);
        let offered = buffers.len() - unused;
        let count = headers.receive(fd, &mut buffers[unused..])?;
        received.reserve(count);
        for index in 0..count {
            let message = headers.message(index)?;
            let buffer = buffers.pop().expect("one was received into it");
            received.push(ReceivedDatagrams {
                buffer,
                message,
                pool: Rc::clone(&self.0),
            });
        }
        Ok(Batch {
            count,
            is_last: count < offered,
        })
    }

    /// Waits until a buffer is free, and counts that.
    pub(super) fn until_free(&self) -> UntilFree<'_> {
        self.0.pauses.set(self.0.pauses.get() + 1);
        UntilFree {
            pool: &self.0,
            key: None,
        }
    }
}

impl Shared {
    fn is_any_free(&self) -> bool {
        let free = self.free.borrow();
        !free.buffers.is_empty() || free.unmade > 0
    }

    fn give_back(&self, buffer: Box<[u8]>) {
        self.free.borrow_mut().buffers.push(buffer);
        let waiting = self.waiting.borrow().waiting();
        std::iter::from_fn(|| self.waiting.borrow_mut().notify_oldest())
            .take(waiting)
            .for_each(wake);
    }
}

impl_debug! { DatagramPool, it:
    buffers: it.buffers(), buffer_bytes: it.buffer_bytes(), available: it.available(),
    pauses: it.pauses()
}

pub(super) struct UntilFree<'a> {
    pool: &'a Shared,
    key: Option<WaitKey>,
}

impl Future for UntilFree<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let UntilFree { pool, key } = &mut *self;
        let polled = poll_waiting(cx, |waker| {
            let mut waiting = pool.waiting.borrow_mut();
            if pool.is_any_free() {
                waiting.finish(key, waker);
                return Poll::Ready(());
            }
            waiting.wait(key, waker, ());
            Poll::Pending
        });
        waits_for(polled, || Awaited::Other("a free buffer for datagrams"))
    }
}

impl Drop for UntilFree<'_> {
    fn drop(&mut self) {
        // All are notified at once, so there is nothing to pass on.
        let left = self.pool.waiting.borrow_mut().leave(&mut self.key);
        drop(left);
    }
}

/// One datagram, or several of one sender that were received as one (see
/// [`UdpSocket::set_gro`](super::UdpSocket::set_gro)), in a buffer of a [`DatagramPool`]. Dropping it
/// gives the buffer back.
///
/// # Examples
///
/// ```
/// use glommio::net::{DatagramPool, UdpSocket};
///
/// # glommio::LocalExecutor::default().run(async {
/// let receiver = UdpSocket::bind("127.0.0.1:0")?;
/// receiver.set_receive_ecn(true)?;
/// receiver.set_receive_destination(true)?;
/// receiver.set_receive_timestamps(true)?;
/// let sender = UdpSocket::bind("127.0.0.1:0")?;
/// sender.send_to(b"hello", receiver.local_addr()?).await?;
///
/// let mut received = Vec::new();
/// receiver.recv_many(&DatagramPool::new(16, 1_500), &mut received).await?;
/// let mut datagrams = received.remove(0);
/// assert_eq!(datagrams.from(), sender.local_addr()?);
/// datagrams.bytes_mut()[0] = b'j';
/// assert_eq!(datagrams.bytes(), b"jello");
/// assert_eq!(datagrams.segment_size(), 5); // one datagram
/// assert_eq!(datagrams.segments().count(), 1);
/// assert!(!datagrams.is_truncated());
/// assert_eq!(datagrams.ecn(), None);
/// let destination = datagrams.destination().expect("it was asked for");
/// assert_eq!(destination.address, receiver.local_addr()?.ip());
/// println!("received on interface {} at {:?}", destination.interface, datagrams.received_at());
/// # Ok::<_, glommio::GlommioError<()>>(())
/// # }).unwrap();
/// ```
pub struct ReceivedDatagrams {
    buffer: Box<[u8]>,
    message: Message,
    pool: Rc<Shared>,
}

/// Where a datagram was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The address in its header: one of this host, or of a group.
    pub address: IpAddr,
    /// The index of the interface that received it.
    pub interface: u32,
}

impl ReceivedDatagrams {
    /// The sender.
    pub fn from(&self) -> SocketAddr {
        self.message.from
    }

    /// The bytes that were received, one datagram behind the other.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.message.length]
    }

    /// The bytes that were received, to be changed in place.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.message.length]
    }

    /// The length of each datagram but the last, which may be shorter.
    pub fn segment_size(&self) -> usize {
        self.message.segment_bytes.unwrap_or(self.message.length)
    }

    /// The datagrams, in order; an empty one, too.
    pub fn segments(&self) -> DatagramSegments<'_> {
        DatagramSegments {
            rest: Some(self.bytes()),
            segment_size: self.segment_size(),
        }
    }

    /// The mark of congestion that they carry. None without a mark, or without
    /// [`set_receive_ecn`](super::UdpSocket::set_receive_ecn).
    pub fn ecn(&self) -> Option<Ecn> {
        Ecn::from_bits(self.message.ecn)
    }

    /// Where they were sent to. None without
    /// [`set_receive_destination`](super::UdpSocket::set_receive_destination).
    pub fn destination(&self) -> Option<Destination> {
        let (address, interface) = self.message.destination?;
        Some(Destination { address, interface })
    }

    /// When the kernel received them, or the first of them, by the system's clock. None without
    /// [`set_receive_timestamps`](super::UdpSocket::set_receive_timestamps).
    pub fn received_at(&self) -> Option<SystemTime> {
        self.message.received_at
    }

    /// Whether the buffer was too short, and the rest is gone.
    pub fn is_truncated(&self) -> bool {
        self.message.is_truncated
    }
}

impl Drop for ReceivedDatagrams {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.buffer));
    }
}

impl_debug! { ReceivedDatagrams, it:
    from: it.from(), bytes: it.bytes().len(), segment_size: it.segment_size(), ecn: it.ecn(),
    destination: it.destination(), received_at: it.received_at(), is_truncated: it.is_truncated()
}

/// The datagrams in a buffer; see [`ReceivedDatagrams::segments`].
#[derive(Clone, Debug)]
pub struct DatagramSegments<'a> {
    /// None when all were taken.
    rest: Option<&'a [u8]>,
    segment_size: usize,
}

impl<'a> Iterator for DatagramSegments<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let (segment, rest) = rest.split_at(rest.len().min(self.segment_size));
        self.rest = Some(rest).filter(|rest| !rest.is_empty());
        Some(segment)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest.map_or(0, |rest| {
            rest.len().div_ceil(self.segment_size.max(1)).max(1)
        });
        (left, Some(left))
    }
}

impl ExactSizeIterator for DatagramSegments<'_> {}
