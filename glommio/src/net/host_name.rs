//! Host names in what callers give as an address.
//!
//! `std::net::ToSocketAddrs` has one method, which looks a name up on the calling thread. To have
//! that done elsewhere, the name must be copied out; but an implementor need not be `'static`, so
//! the standard library's `TypeId` cannot say what it is. A type id that ignores lifetimes can.

#![allow(unsafe_code)]

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::{io, ptr, vec};

use crate::sys::socket;

/// A host, by name or by IP literal, and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostName<'a> {
    /// Both in one text: `host:port`.
    WithPort(&'a str),
    /// The host and the port.
    AndPort(&'a str, u16),
}

impl<'a> HostName<'a> {
    /// What `address` holds, if it is of a type of the standard library that may need a lookup: a
    /// text, or a pair of a text and a port, behind up to three references more than the
    /// trait's callers give.
    pub(crate) fn of<A>(address: &'a A) -> Option<HostName<'a>> {
        behind_references::<A, &str>(address)
            .or_else(|| behind_references::<A, String>(address))
            .or_else(|| behind_references::<A, (&str, u16)>(address))
            .or_else(|| behind_references::<A, (String, u16)>(address))
    }

    /// The address, if it is written as one: then there is nothing to look up.
    pub(crate) fn literal(self) -> Option<SocketAddr> {
        match self {
            HostName::WithPort(text) => text.parse().ok(),
            HostName::AndPort(host, port) => Some(SocketAddr::new(host.parse().ok()?, port)),
        }
    }

    /// A copy that can be sent to another thread.
    pub(crate) fn to_owned(self) -> OwnedHostName {
        match self {
            HostName::WithPort(text) => OwnedHostName::WithPort(text.to_owned()),
            HostName::AndPort(host, port) => OwnedHostName::AndPort(host.to_owned(), port),
        }
    }
}

/// A [`HostName`] of its own.
#[derive(Clone, Debug)]
pub(crate) enum OwnedHostName {
    WithPort(String),
    AndPort(String, u16),
}

impl OwnedHostName {
    /// Asks the system's resolver, which blocks the calling thread until it has answered.
    pub(crate) fn look_up(&self) -> io::Result<vec::IntoIter<SocketAddr>> {
        match self {
            OwnedHostName::WithPort(text) => socket::look_up(text, None),
            OwnedHostName::AndPort(host, port) => socket::look_up(host, Some(*port)),
        }
    }
}

/// A type that holds a host name.
///
/// # Safety
///
/// 1. Every lifetime in the type is `'a`.
/// 2. The type is covariant in `'a`.
unsafe trait Named<'a>: 'a {
    fn host_name(&'a self) -> HostName<'a>;
}

// SAFETY: (1, 2) a shared reference, to a type without lifetimes.
unsafe impl<'a> Named<'a> for &'a str {
    fn host_name(&'a self) -> HostName<'a> {
        HostName::WithPort(self)
    }
}

// SAFETY: (1, 2) no lifetimes.
unsafe impl<'a> Named<'a> for String {
    fn host_name(&'a self) -> HostName<'a> {
        HostName::WithPort(self)
    }
}

// SAFETY: (1, 2) a tuple is covariant in its fields; see `&str`.
unsafe impl<'a> Named<'a> for (&'a str, u16) {
    fn host_name(&'a self) -> HostName<'a> {
        HostName::AndPort(self.0, self.1)
    }
}

// SAFETY: (1, 2) no lifetimes.
unsafe impl<'a> Named<'a> for (String, u16) {
    fn host_name(&'a self) -> HostName<'a> {
        HostName::AndPort(&self.0, self.1)
    }
}

// SAFETY: (1, 2) a shared reference is covariant in its lifetime, which is `'a`, and in the type
// behind it, for which the same is promised.
unsafe impl<'a, T: Named<'a>> Named<'a> for &'a T {
    fn host_name(&'a self) -> HostName<'a> {
        (**self).host_name()
    }
}

fn behind_references<'a, A, T: Named<'a>>(address: &'a A) -> Option<HostName<'a>> {
    if_same::<A, T>(address)
        .or_else(|| if_same::<A, &'a T>(address))
        .or_else(|| if_same::<A, &'a &'a T>(address))
        .or_else(|| if_same::<A, &'a &'a &'a T>(address))
}

/// The host name in `address`, if `A` is `T` up to lifetimes.
fn if_same<'a, A, T: Named<'a>>(address: &'a A) -> Option<HostName<'a>> {
    if typeid::of::<A>() != typeid::of::<T>() {
        return None;
    }
    // SAFETY:
    // 1. Equal ids say that `A` and `T` are the same type but for lifetimes, on which layout does
    //    not depend, so a `T` may be read here.
    // 2. All lifetimes in `T` are `'a`, and those in `A` outlive `'a`, or there were no `&'a A`.
    //    `T` is covariant in them, so this is `&'a A` with its lifetimes shortened, as the compiler
    //    does by itself where it knows both types.
    // 3. The reference is shared before and after, and lives as long.
    let address: &'a T = unsafe { &*ptr::from_ref(address).cast::<T>() };
    Some(address.host_name())
}
