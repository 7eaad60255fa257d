//! What TCP sockets have been given while the clock was paused, and the kernel has not sent yet: it sends the rest by
//! itself, in real time, as peers make room and confirm what they have.

#![allow(unsafe_code)]
#![cfg_attr(
    not(feature = "simulation"),
    allow(dead_code, reason = "no clock is paused")
)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::{Duration, Instant};

use socket2::{Protocol, SockRef};

use crate::clock;

/// How long the kernel may take for its next step, and how often it was looked for, as on a busy machine time goes by
/// without any. It asks for room, and repeats what was lost, after 200 ms.
const PATIENCE: (Duration, u32) = (Duration::from_millis(300), 100);

/// The same until the peer has what was sent. That is confirmed with the next data that the peer sends, or much later.
const ON_ITS_WAY: (Duration, u32) = (Duration::from_millis(2), 20);

/// `SIOCOUTQNSD` and `SIOCOUTQ`
const UNSENT: libc::Ioctl = 0x894B;
const UNCONFIRMED: libc::Ioctl = libc::TIOCOUTQ;

/// What a socket has not sent, and what its peer has not confirmed, in bytes.
type Left = [libc::c_int; 2];

#[derive(Default)]
struct Given {
    sockets: BTreeMap<RawFd, Sending>,
    /// The last one that was closed.
    closed: Option<Sending>,
}

/// How much is left of a socket, since when it is as much, and for how many looks.
struct Sending {
    left: Left,
    since: Instant,
    looks: u32,
}

impl Sending {
    fn new(left: Left) -> Self {
        let since = clock::real();
        Sending {
            left,
            since,
            looks: 0,
        }
    }

    /// Whether the kernel is about to do something.
    fn goes_on(&self) -> bool {
        let passed = clock::real() - self.since;
        let [unsent, unconfirmed] = self.left;
        let is_recent = |(time, looks)| passed < time || self.looks < looks;
        unsent > 0 && is_recent(PATIENCE) || unconfirmed > 0 && is_recent(ON_ITS_WAY)
    }
}

thread_local! {
    static GIVEN: RefCell<Given> = RefCell::default();
}

/// `fd` was given something to send.
#[inline]
pub(crate) fn add(fd: RawFd) {
    if clock::is_paused() && is_tcp(fd) {
        GIVEN.with_borrow_mut(|given| {
            given
                .sockets
                .entry(fd)
                .or_insert_with(|| Sending::new([-1; 2]));
        });
    }
}

/// `fd` is about to be closed.
#[inline]
pub(crate) fn closing(fd: RawFd) {
    if clock::is_paused() {
        // It may be dropped at the end of the thread.
        let _ = GIVEN.try_with(|given| {
            let mut given = given.borrow_mut();
            if given.sockets.remove(&fd).is_some() {
                given.closed = Some(Sending::new(left(fd)));
            }
        });
    }
}

/// Whether the kernel is about to send something. What a peer has no room for, as it does not read, it is not.
pub(crate) fn are_any() -> bool {
    GIVEN.with_borrow_mut(|given| {
        // What has gone on may have ended a wait, of which the ring has not heard.
        let mut has_changed = false;
        given.sockets.retain(|fd, it| {
            it.looks += 1;
            let left = left(*fd);
            if left != it.left {
                *it = Sending::new(left);
                has_changed = true;
            }
            left != [0; 2]
        });
        given.closed.iter_mut().for_each(|it| it.looks += 1);
        given.closed.take_if(|it| !it.goes_on());
        has_changed || given.closed.is_some() || given.sockets.values().any(Sending::goes_on)
    })
}

fn is_tcp(fd: RawFd) -> bool {
    // SAFETY: it is that of a call on a socket, which is open until that returns.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    matches!(SockRef::from(&fd).protocol(), Ok(Some(Protocol::TCP)))
}

fn left(fd: RawFd) -> Left {
    [UNSENT, UNCONFIRMED].map(|what| {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the kernel writes no more than the number during the call, of whatever `fd` is.
        let failed = unsafe { libc::ioctl(fd, what, &raw mut bytes) };
        if failed == 0 { bytes } else { 0 }
    })
}
