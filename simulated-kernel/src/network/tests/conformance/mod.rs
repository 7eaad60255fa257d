//! Scenarios that run on the simulated network and on the kernel: the transcripts must be equal,
//! errno by errno, and so must the readiness at rest.
//!
//! A scenario runs on the simulation first. On the kernel, where a segment may take its time, each
//! readiness is waited for until it is the one of the simulation, for at most some seconds. Ports
//! are numbered in the order in which they come up.

use std::fmt::Debug;
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr};
use std::time::{Duration, Instant};

use nix::errno::Errno as Name;

use super::super::{Address, Kind, Received, Result, UnixName};

/// Calls in their order, each of the socket before the colon.
macro_rules! calls {
    ($run:ident, $($id:ident: $($call:ident($($argument:expr),*)),+;)+) => {
        $($(_ = $run.$call($id, $($argument),*);)+)+
    };
}

mod kernel;
mod random;
mod simulated;
mod tcp;
mod tcp_ends;
mod udp;
mod unix;

/// The calls that scenarios make. Sockets are numbers.
pub(super) trait Sockets {
    fn socket(&mut self, kind: Kind) -> usize;
    fn pair(&mut self, kind: Kind) -> (usize, usize);
    fn bind(&mut self, id: usize, address: &Address) -> Result<()>;
    fn listen(&mut self, id: usize, backlog: usize) -> Result<()>;
    fn connect(&mut self, id: usize, address: &Address) -> Result<()>;
    fn accept(&mut self, id: usize) -> Result<(usize, Address)>;
    fn send(&mut self, id: usize, bytes: &[u8], address: Option<&Address>) -> Result<usize>;
    fn receive(&mut self, id: usize, buffer: &mut [u8], peek: bool) -> Result<Received>;
    fn shutdown(&mut self, id: usize, how: Shutdown) -> Result<()>;
    fn close(&mut self, id: usize);
    fn take_error(&mut self, id: usize) -> Result<Option<i32>>;
    fn local_addr(&mut self, id: usize) -> Result<Address>;
    fn peer_addr(&mut self, id: usize) -> Result<Address>;
    fn set(&mut self, id: usize, option: Setting) -> Result<()>;
    fn readiness(&mut self, id: usize) -> i16;
    fn unlink(&mut self, path: &[u8]);
    fn pass(&mut self, time: Duration);
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Setting {
    ReuseAddress,
    ReusePort,
    Broadcast,
    ResetOnClose,
    SendBuffer(usize),
    ReceiveBuffer(usize),
}

/// A scenario under way.
pub(super) struct Run {
    sockets: Box<dyn Sockets>,
    lines: Vec<String>,
    expected: Option<Vec<String>>,
    /// A line is not as expected, so that no other one is to be waited for.
    differs: bool,
    ports: Vec<u16>,
    directory: Vec<u8>,
}

/// How often a scenario is run whose port another program may have.
const PORTS_TRIED: u32 = 4;

/// Runs the scenario on both, and compares.
pub(super) fn compare(scenario: impl Fn(&mut Run)) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("text").as_bytes().to_vec();
    let transcript = |sockets: Box<dyn Sockets>, expected| {
        let mut run = Run {
            sockets,
            lines: Vec::new(),
            expected,
            differs: false,
            ports: Vec::new(),
            directory: path.clone(),
        };
        scenario(&mut run);
        run.lines
    };
    let simulated = transcript(Box::new(simulated::Simulated::new()), None);
    let on_the_kernel = || transcript(Box::<kernel::Kernel>::default(), Some(simulated.clone()));
    // A port that the kernel has chosen for one address may be taken at the other.
    let kernel = (1..PORTS_TRIED)
        .map(|_| on_the_kernel())
        .find(|kernel| !differs_by_a_taken_port(kernel, &simulated))
        .unwrap_or_else(on_the_kernel);
    for (number, (kernel_line, line)) in kernel.iter().zip(&simulated).enumerate() {
        assert_eq!(
            kernel_line,
            line,
            "line {number}: the kernel on the left, the simulation on the right, after\n{}",
            simulated[..number].join("\n")
        );
    }
    assert_eq!(kernel.len(), simulated.len());
    assert!(!simulated.is_empty());
}

fn differs_by_a_taken_port(kernel: &[String], simulated: &[String]) -> bool {
    let mut differences = kernel.iter().zip(simulated).filter(|(one, two)| one != two);
    let first = differences.next();
    // Or it is one again that an earlier socket had.
    let is_of_port = |line: &str| line.ends_with("EADDRINUSE") || line.contains(" port ");
    first.is_some_and(|(kernel, _)| is_of_port(kernel))
}

impl Run {
    fn note(&mut self, line: String) {
        let expected = self.expected.as_ref();
        self.differs |= expected.is_some_and(|it| it.get(self.lines.len()) != Some(&line));
        self.lines.push(line);
    }

    fn result<T: Debug>(&mut self, what: &str, result: Result<T>) -> Option<T> {
        let text = match &result {
            Ok(value) => format!("{value:?}"),
            Err(error) => format!("{:?}", Name::from_raw(*error)),
        };
        self.note(format!("{what}: {text}"));
        result.ok()
    }

    fn address(&mut self, address: &Address) -> String {
        match address {
            Address::Ip(address) => {
                let number = match address.port() {
                    0 => "0".to_owned(),
                    port => {
                        let known = self.ports.iter().position(|other| *other == port);
                        let number = known.unwrap_or_else(|| {
                            self.ports.push(port);
                            self.ports.len() - 1
                        });
                        format!("port {number}")
                    }
                };
                format!("{} {number}", address.ip())
            }
            Address::Unix(UnixName::Path(path)) => {
                let path = path.strip_prefix(self.directory.as_slice()).unwrap_or(path);
                format!("path {}", String::from_utf8_lossy(path))
            }
            Address::Unix(name) => format!("{name:?}"),
        }
    }

    pub(super) fn socket(&mut self, kind: Kind) -> usize {
        self.sockets.socket(kind)
    }

    pub(super) fn pair(&mut self, kind: Kind) -> (usize, usize) {
        self.sockets.pair(kind)
    }

    /// Whether it is bound now.
    pub(super) fn bind(&mut self, id: usize, address: &Address) -> bool {
        let result = self.sockets.bind(id, address);
        self.result("bind", result).is_some()
    }

    pub(super) fn listen(&mut self, id: usize, backlog: usize) {
        let result = self.sockets.listen(id, backlog);
        self.result("listen", result);
    }

    pub(super) fn connect(&mut self, id: usize, address: &Address) {
        let result = self.sockets.connect(id, address);
        self.result("connect", result);
    }

    pub(super) fn accept(&mut self, id: usize) -> Option<usize> {
        let result = self.sockets.accept(id);
        let line = match &result {
            Ok((_, address)) => self.address(address),
            Err(error) => format!("{:?}", Name::from_raw(*error)),
        };
        self.note(format!("accept: {line}"));
        result.ok().map(|(id, _)| id)
    }

    pub(super) fn send(&mut self, id: usize, bytes: &[u8]) {
        let result = self.sockets.send(id, bytes, None);
        self.result("send", result);
    }

    pub(super) fn send_to(&mut self, id: usize, bytes: &[u8], address: &Address) {
        let result = self.sockets.send(id, bytes, Some(address));
        self.result("send_to", result);
    }

    fn receive_into(&mut self, id: usize, len: usize, peek: bool) {
        let mut buffer = vec![0; len];
        let result = self.sockets.receive(id, &mut buffer, peek);
        let line = match result {
            Ok(received) => {
                let from = received
                    .from
                    .as_ref()
                    .map_or(String::new(), |from| self.address(from));
                let text = String::from_utf8_lossy(&buffer[..received.len]).into_owned();
                format!("{text:?} of {} from {from}", received.full)
            }
            Err(error) => format!("{:?}", Name::from_raw(error)),
        };
        self.note(format!("receive: {line}"));
    }

    pub(super) fn receive(&mut self, id: usize, len: usize) {
        self.receive_into(id, len, false);
    }

    pub(super) fn peek(&mut self, id: usize, len: usize) {
        self.receive_into(id, len, true);
    }

    pub(super) fn shutdown(&mut self, id: usize, how: Shutdown) {
        let result = self.sockets.shutdown(id, how);
        self.result("shutdown", result);
    }

    pub(super) fn close(&mut self, id: usize) {
        self.sockets.close(id);
    }

    pub(super) fn take_error(&mut self, id: usize) {
        let line = match self.sockets.take_error(id) {
            Ok(error) => format!("{:?}", error.map(Name::from_raw)),
            Err(error) => format!("{:?}", Name::from_raw(error)),
        };
        self.note(format!("error: {line}"));
    }

    pub(super) fn set(&mut self, id: usize, setting: Setting) {
        let result = self.sockets.set(id, setting);
        self.result("set", result);
    }

    /// The local address, for others to connect to.
    pub(super) fn local(&mut self, id: usize) -> Address {
        let address = self.sockets.local_addr(id).expect("an address");
        let line = self.address(&address);
        self.note(format!("local: {line}"));
        address
    }

    pub(super) fn peer(&mut self, id: usize) {
        let line = match self.sockets.peer_addr(id) {
            Ok(address) => self.address(&address),
            Err(error) => format!("{:?}", Name::from_raw(error)),
        };
        self.note(format!("peer: {line}"));
    }

    /// The readiness at rest.
    pub(super) fn ready(&mut self, id: usize) {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let line = format!("readiness: {}", mask_text(self.sockets.readiness(id)));
            let is_expected = self
                .expected
                .as_ref()
                .is_none_or(|lines| lines.get(self.lines.len()) == Some(&line));
            if is_expected || self.differs || Instant::now() > deadline {
                self.note(line);
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.sockets.pass(time);
    }

    /// Sends until the buffers are full, and returns how much.
    pub(super) fn fill(&mut self, id: usize, piece: usize) -> usize {
        let bytes = vec![b'x'; piece];
        let mut sent = 0;
        let mut full_since = None;
        // The kernel moves data from the sender's buffer to the receiver's at its own pace.
        loop {
            match self.sockets.send(id, &bytes, None) {
                Ok(len) => {
                    sent += len;
                    full_since = None;
                }
                Err(error) => {
                    let since = *full_since.get_or_insert_with(Instant::now);
                    if self.expected.is_none() || since.elapsed() > Duration::from_millis(100) {
                        self.result::<()>("fill", Err(error));
                        return sent;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }

    /// Receives until `len` bytes are there.
    pub(super) fn drain(&mut self, id: usize, len: usize) {
        let mut buffer = vec![0; 65536];
        let mut received = 0;
        let deadline = Instant::now() + Duration::from_secs(10);
        while received < len && Instant::now() < deadline {
            match self.sockets.receive(id, &mut buffer, false) {
                Ok(Received { len: 0, .. }) => break,
                Ok(Received { len, .. }) => received += len,
                Err(libc::EAGAIN) => self.sockets.pass(Duration::from_millis(1)),
                Err(error) => {
                    self.result::<()>("drain", Err(error));
                    break;
                }
            }
        }
        self.note(format!("drained all: {}", received == len));
    }

    pub(super) fn path(&self, name: &str) -> Address {
        let mut path = self.directory.clone();
        path.push(b'/');
        path.extend(name.as_bytes());
        Address::Unix(UnixName::Path(path))
    }

    pub(super) fn unlink(&mut self, address: &Address) {
        if let Address::Unix(UnixName::Path(path)) = address {
            self.sockets.unlink(path);
        }
    }
}

fn mask_text(mask: i16) -> String {
    let names = [
        (libc::POLLIN, "IN"),
        (libc::POLLRDNORM, "RDNORM"),
        (libc::POLLOUT, "OUT"),
        (libc::POLLWRNORM, "WRNORM"),
        (libc::POLLWRBAND, "WRBAND"),
        (libc::POLLRDHUP, "RDHUP"),
        (libc::POLLERR, "ERR"),
        (libc::POLLHUP, "HUP"),
        (libc::POLLNVAL, "NVAL"),
        (libc::POLLPRI, "PRI"),
    ];
    let set: Vec<_> = names
        .iter()
        .filter(|(bit, _)| mask & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() {
        "none".to_owned()
    } else {
        set.join(" ")
    }
}

pub(super) fn ip(address: impl Into<std::net::IpAddr>, port: u16) -> Address {
    Address::Ip(SocketAddr::new(address.into(), port))
}

pub(super) const V4: Ipv4Addr = Ipv4Addr::LOCALHOST;
pub(super) const V6: Ipv6Addr = Ipv6Addr::LOCALHOST;
