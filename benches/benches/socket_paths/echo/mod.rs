//! An echo server of many connections, in several ways, and the client that keeps it busy.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};

use benches::thread::do_not_interrupt;

use crate::meter::{Amount, Measured, Meter};
use crate::ring::{Completion, Ring};
use crate::stage::{self, Run};

mod operations;
mod polled;
mod provided;

use operations::Operations;
use polled::{Polled, Receive};
use provided::{Provided, Reply};

/// One message in flight on each.
const CONNECTIONS: usize = 64;
/// Of a message.
const BYTES: usize = 64;

/// A way to receive a message and to send it back.
pub struct Way {
    pub name: &'static str,
    /// What it needs of the kernel that the runtime can do without.
    pub needs: &'static str,
    serve: fn(&[TcpStream], Amount) -> io::Result<Measured>,
}

/// The first is the one that the runtime takes.
#[rustfmt::skip]
pub const WAYS: &[Way] = &[
    way("multishot poll; `recvmsg` with `TCP_INQ`, exact; `send`", "5.13", |peers, amount| {
        serve(peers, amount, |_| Polled::new(peers, true, Receive::TellingRest))
    }),
    way("a poll for each wait; `recv`, exact; `send`", "5.13", |peers, amount| {
        serve(peers, amount, |_| Polled::new(peers, false, Receive::Once))
    }),
    way("multishot poll; `recv`, roomy; `send`", "5.13", |peers, amount| {
        serve(peers, amount, |_| Polled::new(peers, true, Receive::Roomy))
    }),
    way("multishot poll; `recv`, exact, until `EAGAIN`; `send`", "5.13", |peers, amount| {
        serve(peers, amount, |_| Polled::new(peers, true, Receive::UntilEmpty))
    }),
    way("multishot receive, copy; `send`", "6.0", |peers, amount| {
        serve(peers, amount, |ring| Provided::new(ring, peers, Reply::Call))
    }),
    way("multishot receive; send operation", "6.0", |peers, amount| {
        serve(peers, amount, |ring| Provided::new(ring, peers, Reply::Operation))
    }),
    way("receive operation; send operation", "5.19", |peers, amount| {
        serve(peers, amount, |ring| Ok(Operations::new(ring, peers)))
    }),
];

const fn way(
    name: &'static str,
    needs: &'static str,
    serve: fn(&[TcpStream], Amount) -> io::Result<Measured>,
) -> Way {
    Way { name, needs, serve }
}

/// What an echo cost the server.
#[derive(Clone, Copy, Debug)]
pub struct Echo {
    /// Of its CPU, for a message, in microseconds.
    pub cpu_us: f64,
    /// Each time it had waited.
    pub messages_per_turn: f64,
}

impl Way {
    /// Sends messages on every connection, so often.
    pub fn measure(&self, cpu: usize, rounds: u64) -> io::Result<Run<Echo>> {
        let of_round = (CONNECTIONS * BYTES) as u64;
        let unmeasured_rounds = rounds.div_ceil(10);
        let amount = Amount {
            unmeasured: of_round * unmeasured_rounds,
            total: of_round * (unmeasured_rounds + rounds),
        };
        let (near, far) = stage::connections(CONNECTIONS)?;
        let server = move || {
            do_not_interrupt()?;
            (self.serve)(&far, amount)
        };
        let client = move || {
            do_not_interrupt()?;
            ask(near, unmeasured_rounds + rounds)
        };
        let run = stage::run((cpu, server), (cpu, client))?;
        Ok(run.map(|(measured, ())| {
            let messages = measured.bytes / BYTES as f64;
            Echo {
                cpu_us: measured.cpu.as_secs_f64() * 1e6 / messages,
                messages_per_turn: messages / measured.turns,
            }
        }))
    }
}

/// A message on each connection, and the answer from each.
fn ask(mut peers: Vec<TcpStream>, rounds: u64) -> io::Result<()> {
    for round in 0..rounds {
        let message = [round as u8; BYTES];
        for peer in &mut peers {
            peer.write_all(&message)?;
        }
        for peer in &mut peers {
            let mut answer = [0; BYTES];
            peer.read_exact(&mut answer)?;
            if answer != message {
                return Err(io::Error::other("the answer is not what was sent"));
            }
        }
    }
    Ok(())
}

/// What the ways do differently.
trait Server {
    /// Waits for the first message of a connection.
    fn begin(&mut self, ring: &mut Ring, peer: usize) -> io::Result<()>;

    /// Goes on with what has completed.
    fn complete(
        &mut self,
        ring: &mut Ring,
        completion: Completion,
        log: &mut Log,
    ) -> io::Result<()>;

    /// All of a turn has been dealt with.
    fn end_turn(&mut self) {}
}

/// What has come so far.
struct Log {
    meter: Meter,
    turns: u64,
    open: usize,
}

impl Log {
    fn received(&mut self, bytes: usize) {
        self.meter.add(bytes, self.turns);
    }

    fn ended(&mut self) {
        self.open -= 1;
    }
}

/// Answers until all connections have ended.
fn serve<S: Server>(
    peers: &[TcpStream],
    amount: Amount,
    server: impl FnOnce(&mut Ring) -> io::Result<S>,
) -> io::Result<Measured> {
    let mut ring = Ring::new()?;
    let mut server = server(&mut ring)?;
    let mut log = Log {
        meter: Meter::new(amount),
        turns: 0,
        open: peers.len(),
    };
    for peer in 0..peers.len() {
        server.begin(&mut ring, peer)?;
    }
    let mut completions = Vec::new();
    while log.open > 0 || ring.uses_memory() {
        ring.turn(&mut completions)?;
        log.turns += 1;
        for completion in completions.drain(..) {
            server.complete(&mut ring, completion, &mut log)?;
        }
        server.end_turn();
    }
    let measured = log.meter.measured();
    measured.ok_or_else(|| io::Error::other("the client has ended too soon"))
}

fn descriptors(peers: &[TcpStream]) -> Vec<RawFd> {
    peers.iter().map(AsRawFd::as_raw_fd).collect()
}
