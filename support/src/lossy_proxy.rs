//! A network between clients and a server that loses datagrams, by a seed.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Passes datagrams on between any number of clients and one server, on a thread of its own. To the
/// server each client has an address of its own.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

struct Shared {
    is_over: AtomicBool,
    lost: AtomicU64,
    passed: AtomicU64,
}

impl Proxy {
    /// Loses `lost_ppm` of a million datagrams, in each direction. It knows up to `clients` addresses
    /// of clients at a time, and has a socket for each from the beginning; the one that was heard of
    /// least lately makes way for a new one.
    ///
    /// # Errors
    ///
    /// Sockets cannot be made or bound.
    pub fn start(
        server: SocketAddr,
        lost_ppm: u32,
        seed: u64,
        clients: usize,
    ) -> io::Result<Proxy> {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        enlarge(&front);
        front.set_nonblocking(true)?;
        let address = front.local_addr()?;
        let shared = Arc::new(Shared {
            is_over: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            passed: AtomicU64::new(0),
        });
        let network = Network {
            server,
            lost_ppm,
            front,
            clients: (0..clients.max(1))
                .map(|_| Client::new(server))
                .collect::<io::Result<_>>()?,
            numbers: HashMap::new(),
            received: 0,
            shared: Arc::clone(&shared),
            state: seed | 1,
        };
        let thread = Some(thread::spawn(|| network.run()));
        Ok(Proxy {
            address,
            shared,
            thread,
        })
    }

    /// What clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many datagrams were lost.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// How many were passed on.
    pub fn passed(&self) -> u64 {
        self.shared.passed.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Client {
    /// None as long as it waits for a client.
    address: Option<SocketAddr>,
    /// By which the server knows it.
    socket: UdpSocket,
    last_received: u64,
}

impl Client {
    fn new(server: SocketAddr) -> io::Result<Client> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        enlarge(&socket);
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Client {
            address: None,
            socket,
            last_received: 0,
        })
    }
}

struct Network {
    server: SocketAddr,
    /// Of a million.
    lost_ppm: u32,
    front: UdpSocket,
    clients: Vec<Client>,
    numbers: HashMap<SocketAddr, usize>,
    received: u64,
    shared: Arc<Shared>,
    state: u64,
}

impl Network {
    fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; 65_536];
        while !self.shared.is_over.load(Ordering::Relaxed) {
            self.wait()?;
            for _ in 0..64 {
                let Ok((length, from)) = self.front.recv_from(&mut buffer) else {
                    break;
                };
                let number = self.number(from)?;
                self.received += 1;
                self.clients[number].last_received = self.received;
                if self.passes() {
                    let _ = self.clients[number].socket.send(&buffer[..length]);
                }
            }
            for number in 0..self.clients.len() {
                for _ in 0..64 {
                    let Client {
                        address, socket, ..
                    } = &self.clients[number];
                    let Ok(length) = socket.recv(&mut buffer) else {
                        break;
                    };
                    let Some(to) = *address else { break };
                    if self.passes() {
                        let _ = self.front.send_to(&buffer[..length], to);
                    }
                }
            }
        }
        Ok(())
    }

    fn wait(&self) -> nix::Result<()> {
        let sockets = self.clients.iter().map(|client| &client.socket);
        let mut waited: Vec<PollFd<'_>> = std::iter::once(&self.front)
            .chain(sockets)
            .map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN))
            .collect();
        match poll(&mut waited, PollTimeout::from(20_u8)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn number(&mut self, address: SocketAddr) -> io::Result<usize> {
        if let Some(number) = self.numbers.get(&address) {
            return Ok(*number);
        }
        // Clients move, and do not come back.
        let used = self.clients.iter().map(|client| client.last_received);
        let number = used
            .enumerate()
            .min_by_key(|(_, used)| *used)
            .map_or(0, |(at, _)| at);
        if let Some(gone) = self.clients[number].address {
            self.numbers.remove(&gone);
            self.clients[number] = Client::new(self.server)?;
        }
        self.clients[number].address = Some(address);
        self.numbers.insert(address, number);
        Ok(number)
    }

    fn passes(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        let drawn = (self.state >> 11) % 1_000_000;
        let passes = drawn >= u64::from(self.lost_ppm);
        let count = if passes {
            &self.shared.passed
        } else {
            &self.shared.lost
        };
        count.fetch_add(1, Ordering::Relaxed);
        passes
    }
}

/// So that it loses what it wants to lose and little else; the kernel may give less.
fn enlarge(socket: &UdpSocket) {
    let socket = socket2::SockRef::from(socket);
    let _ = socket.set_recv_buffer_size(4 << 20);
}
