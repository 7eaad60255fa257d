//! What clients may take of an endpoint.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// What clients may take of an [`Endpoint`](crate::Endpoint), for
/// [`set_limits`](crate::Endpoint::set_limits). The limits of each connection are in its
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
    /// default. A further one is asked to prove its address, as it may be forged. One that has is
    /// refused if as many others that have are in their handshake.
    pub handshakes_per_address: usize,
    /// Connections, those included that the endpoint has made, or that are closed and not forgotten
    /// yet; no limit by default. Further clients are refused. An [`Incoming`](crate::Incoming) that is
    /// not decided counts.
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

/// A client whose handshake is under way, or that is not decided yet.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    pub(super) address: IpAddr,
    /// Whether it has proven that it receives there.
    pub(super) is_validated: bool,
}

impl Client {
    pub(super) fn of(incoming: &quinn_proto::Incoming) -> Client {
        Client {
            address: incoming.remote_address().ip(),
            is_validated: incoming.remote_address_validated(),
        }
    }
}

/// The clients that are under way.
#[derive(Default)]
pub(crate) struct Handshakes {
    count: Cell<usize>,
    /// By [networks](network_of). The keys are the choice of clients: the hash is to be a keyed one.
    by_network: RefCell<HashMap<IpAddr, OfNetwork>>,
}

/// How many of one network are under way.
#[derive(Default)]
struct OfNetwork {
    all: usize,
    validated: usize,
}

impl Handshakes {
    pub(super) fn count(&self) -> usize {
        self.count.get()
    }

    /// Those that count against `client`: anyone can forge the address of others.
    pub(super) fn against(&self, client: Client) -> usize {
        let by_network = self.by_network.borrow();
        let of_network = by_network.get(&network_of(client.address));
        of_network.map_or(0, |of_network| match client.is_validated {
            true => of_network.validated,
            false => of_network.all,
        })
    }

    pub(super) fn begin(&self, client: Client) {
        self.count.set(self.count() + 1);
        let mut by_network = self.by_network.borrow_mut();
        let of_network = by_network.entry(network_of(client.address)).or_default();
        of_network.all += 1;
        of_network.validated += usize::from(client.is_validated);
    }

    pub(super) fn end(&self, client: Client) {
        self.count.set(self.count() - 1);
        let network = network_of(client.address);
        let mut by_network = self.by_network.borrow_mut();
        let of_network = by_network.get_mut(&network).expect("it has begun");
        of_network.all -= 1;
        of_network.validated -= usize::from(client.is_validated);
        if of_network.all == 0 {
            by_network.remove(&network);
        }
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
        let client = |is_validated, text: &str| Client {
            address: text.parse().expect("an address"),
            is_validated,
        };
        let all = [
            client(true, "10.0.0.1"),
            client(false, "::ffff:10.0.0.1"),
            client(false, "10.0.0.2"),
            client(false, "fe80::1:2"),
            client(false, "fe80::9"),
        ];
        all.into_iter().for_each(|client| handshakes.begin(client));
        let counts = all.map(|client| handshakes.against(client));
        assert_eq!((handshakes.count(), counts), (5, [1, 2, 1, 2, 2]));
        assert_eq!(handshakes.against(client(false, "fe81::1")), 0);
        all.into_iter().for_each(|client| handshakes.end(client));
        assert_eq!(handshakes.count(), 0);
        assert!(handshakes.by_network.borrow().is_empty());
    }
}
