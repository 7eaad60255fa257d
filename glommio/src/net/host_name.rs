//! Host names in what callers give as an address.
//!
//! `std::net::ToSocketAddrs` has one method, which looks a name up on the calling thread. To have
//! that done elsewhere, the name must be copied out; but an implementor need not be `'static`, so
//! the standard library's `TypeId` cannot say what it is. A type id that ignores lifetimes can.

#![allow(unsafe_code)]

use std::net::{SocketAddr, ToSocketAddrs};
use std::{io, ptr, vec};

#[cfg(feature = "simulation")]
use crate::simulated;

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
        #[cfg(feature = "simulation")]
        if simulated::is_any() {
            return self.look_up_in_simulation();
        }
        match self {
            OwnedHostName::WithPort(text) => text.to_socket_addrs(),
            OwnedHostName::AndPort(host, port) => (host.as_str(), *port).to_socket_addrs(),
        }
    }
}

#[cfg(feature = "simulation")]
impl OwnedHostName {
    fn look_up_in_simulation(&self) -> io::Result<vec::IntoIter<SocketAddr>> {
        let (host, port) = match self {
            OwnedHostName::AndPort(host, port) => (host.as_str(), *port),
            OwnedHostName::WithPort(text) => text
                .rsplit_once(':')
                .and_then(|(host, port)| Some((host, port.parse().ok()?)))
                .ok_or_else(|| {
                    io::Error::new(io::ErrorKind::InvalidInput, "invalid socket address")
                })?,
        };
        let found = simulated::look_up(host);
        let address = found.expect("a simulation runs on this thread")?;
        Ok(vec![SocketAddr::new(address, port)].into_iter())
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

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
    use std::rc::Rc;

    use super::*;

    const TEXT: HostName<'static> = HostName::WithPort("some.host:80");
    const PAIR: HostName<'static> = HostName::AndPort("some.host", 80);

    #[test]
    fn texts_and_pairs_are_known_owned_and_borrowed() {
        // Not 'static: what is borrowed here dies with the function.
        let (text, host) = (String::from("some.host:80"), String::from("some.host"));
        assert_eq!(HostName::of(&text), Some(TEXT));
        assert_eq!(HostName::of(&text.as_str()), Some(TEXT));
        assert_eq!(HostName::of(&(host.as_str(), 80u16)), Some(PAIR));
        assert_eq!(HostName::of(&(host.clone(), 80u16)), Some(PAIR));
    }

    #[test]
    fn references_to_them_are_known_three_deep() {
        let (text, host) = (String::from("some.host:80"), String::from("some.host"));
        let pair = (host.as_str(), 80u16);
        let owned_pair = (host.clone(), 80u16);
        fn check<'a, T>(value: &'a T, expected: HostName<'a>) {
            assert_eq!(HostName::of(&value), Some(expected));
            assert_eq!(HostName::of(&&value), Some(expected));
            assert_eq!(HostName::of(&&&value), Some(expected));
            assert_eq!(HostName::of(&&&&value), None);
        }
        check(&text, TEXT);
        check(&text.as_str(), TEXT);
        check(&pair, PAIR);
        check(&owned_pair, PAIR);
    }

    #[test]
    fn all_else_is_unknown() {
        struct Lookalike<'a>(#[allow(dead_code, reason = "only its layout matters")] &'a str);
        let text = String::from("some.host:80");
        let v4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 80);
        assert_eq!(HostName::of(&Lookalike(&text)), None);
        assert_eq!(HostName::of(&Cow::Borrowed(text.as_str())), None);
        assert_eq!(HostName::of(&Rc::new(text.as_str())), None);
        assert_eq!(HostName::of(&text.as_bytes()), None);
        assert_eq!(HostName::of(&(text.as_str(), 80i16)), None);
        assert_eq!(HostName::of(&SocketAddr::V4(v4)), None);
        assert_eq!(HostName::of(&v4), None);
        assert_eq!(HostName::of(&(IpAddr::from(*v4.ip()), 80u16)), None);
        assert_eq!(HostName::of(&&[SocketAddr::V4(v4)][..]), None);
    }

    #[test]
    fn literals_are_the_addresses_that_the_standard_library_makes_of_them() {
        for text in ["127.0.0.1:80", "[::1]:80", "[fe80::1%3]:80"] {
            let name = HostName::WithPort(text);
            let expected = text.to_socket_addrs().expect("a literal").next();
            assert_eq!(name.literal(), expected, "{text}");
        }
        for host in ["127.0.0.1", "::1", "::ffff:10.0.0.1"] {
            let name = HostName::AndPort(host, 80);
            let expected = (host, 80).to_socket_addrs().expect("a literal").next();
            assert_eq!(name.literal(), expected, "{host}");
        }
    }

    #[test]
    fn what_needs_a_lookup_is_no_literal() {
        for text in ["localhost:80", "127.0.0.1", "127.0.0.1:", "::1:80", "", ":"] {
            assert_eq!(HostName::WithPort(text).literal(), None, "{text}");
        }
        for host in ["localhost", "[::1]", "127.0.0.1:80", "127.1", ""] {
            assert_eq!(HostName::AndPort(host, 80).literal(), None, "{host}");
        }
    }
}
