//! The sockets of one address, in the order in which the kernel has them.
//!
//! A new one is the last, and the last takes the place of one that is closed. Sockets are bound and
//! closed with the list locked, so that it is right.

use super::kept::Kept;
use std::io;
use std::net::UdpSocket;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of the shards of this process, and the descriptors of their sockets.
#[derive(Default)]
pub(super) struct Order(Mutex<Vec<(u8, RawFd)>>);

impl Order {
    fn lock(&self) -> MutexGuard<'_, Vec<(u8, RawFd)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds the socket of a shard.
    pub(super) fn bind(
        self: &Arc<Order>,
        number: u8,
        bind: impl FnOnce() -> io::Result<UdpSocket>,
    ) -> io::Result<Placed<UdpSocket>> {
        let mut order = self.lock();
        let socket = bind()?;
        let descriptor = socket.as_raw_fd();
        order.push((number, descriptor));
        drop(order);
        let place = Some((Arc::clone(self), descriptor));
        Ok(Placed {
            socket: Some(socket),
            place,
            kept: None,
        })
    }

    /// Calls `act` with the numbers, in an order that does not change meanwhile.
    pub(super) fn with<R>(&self, act: impl FnOnce(&[u8]) -> R) -> R {
        let order = self.lock();
        let numbers: Vec<u8> = order.iter().map(|(number, _)| *number).collect();
        act(&numbers)
    }
}

/// A socket that is in an [`Order`], or [`Kept`], or neither.
pub(crate) struct Placed<S> {
    socket: Option<S>,
    place: Option<(Arc<Order>, RawFd)>,
    // It is dropped after the socket.
    kept: Option<Arc<Kept>>,
}

impl<S> From<S> for Placed<S> {
    fn from(socket: S) -> Placed<S> {
        Placed {
            socket: Some(socket),
            place: None,
            kept: None,
        }
    }
}

impl<S> Placed<S> {
    pub(super) fn kept(socket: S, kept: Arc<Kept>) -> Placed<S> {
        Placed {
            socket: Some(socket),
            place: None,
            kept: Some(kept),
        }
    }

    /// Makes another type of the same socket.
    pub(crate) fn map<T>(mut self, make: impl FnOnce(S) -> T) -> Placed<T> {
        let socket = self.socket.take().map(make);
        let (place, kept) = (self.place.take(), self.kept.take());
        Placed {
            socket,
            place,
            kept,
        }
    }
}

impl<S> Deref for Placed<S> {
    type Target = S;

    fn deref(&self) -> &S {
        self.socket.as_ref().expect("it is taken at the end only")
    }
}

impl<S> Drop for Placed<S> {
    fn drop(&mut self) {
        let Some((order, descriptor)) = self.place.take() else {
            return;
        };
        let mut order = order.lock();
        drop(self.socket.take());
        let place = order.iter().position(|(_, other)| *other == descriptor);
        order.swap_remove(place.expect("it was listed when it was bound"));
    }
}
