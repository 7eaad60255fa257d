//! Random calls, after each of which all sockets are looked at.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown};

use fastrand::Rng;

use super::super::super::kind::Protocol;
use super::super::super::{Address, Kind, UnixName};
use super::{Run, Setting, V4, V6, compare, ip};

const STEPS: u64 = 100;
const SOCKETS_MAX: usize = 6;

/// What a scenario has made so far.
struct Made {
    rng: Rng,
    kinds: &'static [Kind],
    sockets: Vec<(usize, Kind)>,
    /// Those of TCP that were connected, or tried to, and those that listen.
    used: BTreeSet<usize>,
    listeners: BTreeSet<usize>,
    /// Where sockets are or were.
    addresses: Vec<(Address, Kind)>,
    /// Files of Unix sockets.
    paths: Vec<Address>,
    count: u64,
}

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// As many steps as `GLOMMIO_OPERATIONS` says, from the seed `GLOMMIO_SEED` on.
fn compare_random(kinds: &'static [Kind]) {
    let rounds = number("GLOMMIO_OPERATIONS", 10_000).div_ceil(STEPS);
    let first = number("GLOMMIO_SEED", 0);
    for seed in first..first + rounds {
        let _told = scopeguard::guard_on_unwind(seed, |seed| {
            eprintln!("to repeat this: GLOMMIO_SEED={seed} GLOMMIO_OPERATIONS=1");
        });
        compare(|run| {
            let mut made = Made {
                rng: Rng::with_seed(seed),
                kinds,
                sockets: Vec::new(),
                used: BTreeSet::new(),
                listeners: BTreeSet::new(),
                addresses: Vec::new(),
                paths: Vec::new(),
                count: 0,
            };
            for _ in 0..STEPS {
                made.step(run);
                for (socket, _) in &made.sockets {
                    run.ready(*socket);
                }
            }
        });
    }
}

impl Made {
    fn kind(&mut self) -> Kind {
        *self.rng.choice(self.kinds).expect("there are some")
    }

    /// Where another socket of that family is or was.
    fn address(&mut self, kind: Kind) -> Option<Address> {
        let known = self
            .addresses
            .iter()
            .filter(|it| it.1.is_v6() == kind.is_v6());
        let known: Vec<_> = known.map(|it| it.0.clone()).collect();
        let address = self.rng.choice(known);
        match kind.protocol() {
            // Also where none was.
            Protocol::Unix => address.or_else(|| Some(self.free_address(kind))),
            _ => address,
        }
    }

    /// One to bind to.
    fn free_address(&mut self, kind: Kind) -> Address {
        let which = self.rng.u32(..4);
        match (kind, which) {
            (Kind::UnixStream | Kind::UnixDatagram, 0) => {
                let name = format!(
                    "glommio-random-{}-{}",
                    std::process::id(),
                    self.rng.u32(..3)
                );
                Address::Unix(UnixName::Abstract(name.into_bytes()))
            }
            (Kind::UnixStream | Kind::UnixDatagram, _) => {
                Address::Unix(UnixName::Path(vec![b'a' + self.rng.u8(..4)]))
            }
            (Kind::TcpV4 | Kind::UdpV4, 0) => ip(Ipv4Addr::UNSPECIFIED, 0),
            (Kind::TcpV4 | Kind::UdpV4, _) => ip(V4, 0),
            (_, 0) => ip(Ipv6Addr::UNSPECIFIED, 0),
            _ => ip(V6, 0),
        }
    }

    fn add(&mut self, socket: usize, kind: Kind) {
        self.sockets.push((socket, kind));
    }

    fn step(&mut self, run: &mut Run) {
        if self.sockets.is_empty() || self.rng.u32(..8) == 0 {
            return self.socket(run);
        }
        let place = self.rng.usize(..self.sockets.len());
        let (socket, kind) = self.sockets[place];
        self.count += 1;
        let bytes = vec![b'0' + (self.count % 64) as u8; self.rng.usize(..200)];
        match self.rng.u32(..26) {
            0..3 if !self.is_in_use(socket) => {
                let address = in_folder(run, self.free_address(kind));
                if run.bind(socket, &address) {
                    self.addresses.push((run.local(socket), kind));
                    if let Address::Unix(UnixName::Path(_)) = address {
                        self.paths.push(address);
                    }
                }
            }
            3..5 if !self.used.contains(&socket) => {
                if kind.protocol() == Protocol::Tcp {
                    self.listeners.insert(socket);
                }
                run.listen(socket, 16);
            }
            5..9 if !self.is_in_use(socket) => {
                if let Some(address) = self.address(kind) {
                    if kind.protocol() == Protocol::Tcp {
                        self.used.insert(socket);
                    }
                    run.connect(socket, &in_folder(run, address));
                }
            }
            9..12 if self.sockets.len() < SOCKETS_MAX => {
                if let Some(accepted) = run.accept(socket) {
                    if kind.protocol() == Protocol::Tcp {
                        self.used.insert(accepted);
                    }
                    self.add(accepted, kind);
                }
            }
            9..15 => run.send(socket, &bytes),
            15 => {
                if let Some(address) = self.address(kind) {
                    run.send_to(socket, &bytes, &in_folder(run, address));
                }
            }
            16..20 => run.receive(socket, self.rng.usize(..300)),
            20 => run.peek(socket, self.rng.usize(..300)),
            21 if kind.protocol() != Protocol::Tcp || self.used.contains(&socket) => {
                let how = [Shutdown::Read, Shutdown::Write, Shutdown::Both];
                run.shutdown(socket, how[self.rng.usize(..3)]);
            }
            22 => {
                self.sockets.swap_remove(place);
                run.close(socket);
            }
            23 => run.take_error(socket),
            24 => {
                drop(run.local(socket));
                run.peer(socket);
            }
            _ => self.set(run, socket),
        }
    }

    /// Connections that have failed are not begun again, nor is anything made of listeners: what the kernel makes of that
    /// goes by the order of its checks.
    fn is_in_use(&self, socket: usize) -> bool {
        self.used.contains(&socket) || self.listeners.contains(&socket)
    }

    fn socket(&mut self, run: &mut Run) {
        let kind = self.kind();
        if self.sockets.len() + 2 > SOCKETS_MAX {
            let place = self.rng.usize(..self.sockets.len());
            let (socket, _) = self.sockets.swap_remove(place);
            run.close(socket);
        } else if kind.protocol() == Protocol::Unix && self.rng.bool() {
            let (one, other) = run.pair(kind);
            self.add(one, kind);
            self.add(other, kind);
        } else {
            let socket = run.socket(kind);
            self.add(socket, kind);
        }
    }

    fn set(&mut self, run: &mut Run, socket: usize) {
        if self.rng.bool() && !self.paths.is_empty() {
            let place = self.rng.usize(..self.paths.len());
            let path = self.paths.swap_remove(place);
            return run.unlink(&path);
        }
        let settings = [Setting::ReuseAddress, Setting::ResetOnClose];
        run.set(socket, settings[self.rng.usize(..2)]);
    }
}

/// The names of Unix sockets are in the folder of the scenario.
fn in_folder(run: &Run, address: Address) -> Address {
    match &address {
        Address::Unix(UnixName::Path(path)) if !path.starts_with(b"/") => {
            run.path(std::str::from_utf8(path).expect("a letter"))
        }
        _ => address,
    }
}

#[test]
fn random_calls_of_tcp() {
    compare_random(&[Kind::TcpV4, Kind::TcpV6]);
}

#[test]
fn random_calls_of_udp() {
    compare_random(&[Kind::UdpV4, Kind::UdpV6]);
}

#[test]
fn random_calls_of_unix_sockets() {
    compare_random(&[Kind::UnixStream, Kind::UnixDatagram]);
}
