//! What clients may take of an endpoint.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// What clients may take of an [`Endpoint`](crate::Endpoint), for
/// [`set_limits`](crate::Endpoint::set_limits). What each connection may take is limited by its
/// [`TransportConfig`](crate::TransportConfig).
///
/// # Examples
///
/// ```
/// use glommio_quic::Limits;
///
/// let mut limits = Limits::default();
/// limits.connections = 100_000;
/// limits.handshakes_per_address = 50;
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// How long the handshake of a client that was accepted may take, from then on: 10 seconds by
    /// default. The connection is [closed](crate::ConnectionError::TimedOut) then, whatever the
    /// client sends. `None` for as long as it keeps sending.
    pub handshake_timeout: Option<Duration>,
    /// Clients that were accepted and are in their handshake, at a time; no limit by default. Further
    /// ones wait to be accepted. An [`Incoming`](crate::Incoming) that is not decided counts.
    pub handshakes: usize,
    /// Those of them that have one address, or one network of 64 bits with IPv6; no limit by
    /// default. A further one is asked to prove its address, as it may be forged, and then refused.
    pub handshakes_per_address: usize,
    /// Connections, those included that the endpoint has made, or that are closed and not forgotten
    /// yet; no limit by default. Further clients are refused.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            handshake_timeout: Some(Duration::from_secs(10)),
            handshakes: usize::MAX,
            handshakes_per_address: usize::MAX,
            connections: usize::MAX,
        }
    }
}

/// The handshakes of clients that are under way.
#[derive(Default)]
pub(crate) struct Handshakes {
    count: Cell<usize>,
    /// By [networks](network_of). The keys are the choice of clients: the hash is to be a keyed one.
    by_network: RefCell<HashMap<IpAddr, usize>>,
}

impl Handshakes {
    pub(super) fn count(&self) -> usize {
        self.count.get()
    }

    pub(super) fn of_network(&self, address: IpAddr) -> usize {
        let by_network = self.by_network.borrow();
        by_network.get(&network_of(address)).copied().unwrap_or(0)
    }

    pub(super) fn begin(&self, address: IpAddr) {
        self.count.set(self.count() + 1);
        let mut by_network = self.by_network.borrow_mut();
        *by_network.entry(network_of(address)).or_default() += 1;
    }

    pub(super) fn end(&self, address: IpAddr) {
        self.count.set(self.count() - 1);
        let (network, left) = (network_of(address), self.of_network(address) - 1);
        let mut by_network = self.by_network.borrow_mut();
        match left {
            0 => by_network.remove(&network),
            _ => by_network.insert(network, left),
        };
    }
}

/// What one client may well have all addresses of.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_are_counted_by_the_networks_that_one_client_may_have() {
        let handshakes = Handshakes::default();
        let of = |text: &str| text.parse().expect("an address");
        let all = [
            "10.0.0.1",
            "::ffff:10.0.0.1",
            "10.0.0.2",
            "fe80::1:2",
            "fe80::9",
        ]
        .map(of);
        all.into_iter()
            .for_each(|address| handshakes.begin(address));
        let counts = all.map(|address| handshakes.of_network(address));
        assert_eq!((handshakes.count(), counts), (5, [2, 2, 1, 2, 2]));
        assert_eq!(handshakes.of_network(of("fe81::1")), 0);
        all.into_iter().for_each(|address| handshakes.end(address));
        assert_eq!(handshakes.count(), 0);
        assert!(handshakes.by_network.borrow().is_empty());
    }
}
