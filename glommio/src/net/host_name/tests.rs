use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4, ToSocketAddrs};
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
