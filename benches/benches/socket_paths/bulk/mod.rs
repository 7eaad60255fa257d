//! Bulk through one connection, in several ways at one end; the other end is a plain blocking
//! socket.
//!
//! Left to themselves, the ends let megabytes pile up between them, or wake each other at every
//! segment, as it happens: that costs more than what the ways differ by. In step, the receiver
//! returns a byte for each chunk, and the sender waits for it before the next: then the same bytes
//! lie in the same caches, and both ends sleep as often, whatever the way.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::meter::{Amount, Measured, Meter};
use crate::stage::{self, Run};

mod receivers;
mod senders;

/// What a caller asks for at once.
pub const CHUNK: usize = 64 << 10;

/// One end of the connection.
#[derive(Clone, Copy)]
enum End {
    Receives(fn(TcpStream, Flow) -> io::Result<Measured>),
    Sends(fn(TcpStream, Flow) -> io::Result<Sent>),
}

/// What a sender has to say.
struct Sent {
    measured: Measured,
    /// Which part the kernel copied that it was asked not to copy. `None` if it was not asked or
    /// does not say.
    copied: Option<f64>,
}

/// A way to receive, or to send.
pub struct Way {
    pub name: &'static str,
    /// What it needs of the kernel that the runtime can do without.
    pub needs: &'static str,
    /// That of the same end that the runtime takes.
    pub taken: &'static str,
    end: End,
    /// What is sent at once.
    chunk: usize,
}

const RECEIVES: &str = "receiver: multishot poll; `recvmsg` with `TCP_INQ`";
const SENDS_CHUNKS: &str = "sender: `send` of 64 KiB";
const SENDS_MUCH: &str = "sender: `send` of 1 MiB";
const MUCH: usize = 1 << 20;

#[rustfmt::skip]
pub const WAYS: &[Way] = &[
    way(RECEIVES, "5.13", RECEIVES, End::Receives(receivers::polled), CHUNK),
    way("receiver: multishot receive, copy", "6.0", RECEIVES, End::Receives(receivers::provided_and_copied), CHUNK),
    way("receiver: multishot receive, no copy", "6.0", RECEIVES, End::Receives(receivers::provided), CHUNK),
    way(SENDS_CHUNKS, "5.13", SENDS_CHUNKS, End::Sends(senders::copied), CHUNK),
    way("sender: `SEND_ZC` of 64 KiB", "6.0", SENDS_CHUNKS, End::Sends(senders::lent), CHUNK),
    way(SENDS_MUCH, "5.13", SENDS_MUCH, End::Sends(senders::copied), MUCH),
    way("sender: `SEND_ZC` of 1 MiB", "6.0", SENDS_MUCH, End::Sends(senders::lent), MUCH),
];

const fn way(
    name: &'static str,
    needs: &'static str,
    taken: &'static str,
    end: End,
    chunk: usize,
) -> Way {
    Way {
        name,
        needs,
        taken,
        end,
        chunk,
    }
}

/// What goes through, and how it is divided.
struct Flow {
    meter: Meter,
    amount: Amount,
    chunk: usize,
    is_in_step: bool,
    /// Received of a chunk that is not yet complete.
    received: usize,
}

impl Flow {
    /// How many chunks there are.
    fn chunks(&self) -> u64 {
        self.amount.total / self.chunk as u64
    }

    /// A chunk was sent.
    fn sent(&mut self, mut stream: &TcpStream) -> io::Result<()> {
        if self.is_in_step {
            stream.read_exact(&mut [0])?;
        }
        self.meter.add(self.chunk, 0);
        Ok(())
    }

    /// So many bytes have come.
    fn received(&mut self, mut stream: &TcpStream, bytes: usize) -> io::Result<()> {
        self.meter.add(bytes, 0);
        self.received += bytes;
        if self.is_in_step && self.received == self.chunk {
            self.received = 0;
            stream.write_all(&[1])?;
        }
        Ok(())
    }

    /// When the stream has ended.
    fn finish(&self) -> io::Result<Measured> {
        let measured = self.meter.measured();
        measured.ok_or_else(|| io::Error::other("the stream has ended too soon"))
    }
}

/// What came out at both ends.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// In a second, at the receiver, in 10⁹ bytes.
    pub gigabytes: f64,
    /// CPU for 10⁹ bytes, in milliseconds.
    pub sender_ms: f64,
    /// The same.
    pub receiver_ms: f64,
    /// How often the ends fell asleep for 10⁶ bytes, the sender first.
    pub sleeps: [f64; 2],
    /// In percent.
    pub copied: Option<f64>,
}

impl Bulk {
    /// Of both ends.
    pub fn both_ms(&self) -> f64 {
        self.sender_ms + self.receiver_ms
    }
}

impl Way {
    /// The way runs on the first of the CPUs, the other end on the second.
    pub fn measure(
        &self,
        [cpu, other_cpu]: [usize; 2],
        is_in_step: bool,
        mebibytes: u64,
    ) -> io::Result<Run<Bulk>> {
        let unmeasured = mebibytes.div_ceil(8);
        let amount = Amount {
            unmeasured: unmeasured << 20,
            total: (unmeasured + mebibytes) << 20,
        };
        let (mut near, mut far) = stage::connections(1)?;
        let (near, far) = (near.remove(0), far.remove(0));
        let flow = || Flow {
            meter: Meter::new(amount),
            amount,
            chunk: self.chunk,
            is_in_step,
            received: 0,
        };
        let run = match self.end {
            End::Receives(receive) => stage::run(
                (cpu, move || receive(near, flow())),
                (other_cpu, move || write(far, flow())),
            )?
            .map(|(received, sent)| (received, sent, None)),
            End::Sends(send) => stage::run(
                (cpu, move || send(near, flow())),
                (other_cpu, move || read(far, flow())),
            )?
            .map(|(sent, received)| (received, sent.measured, sent.copied)),
        };
        Ok(run.map(|(received, sent, copied)| Bulk {
            gigabytes: received.bytes / received.time.as_secs_f64() / 1e9,
            sender_ms: per_gigabyte(sent),
            receiver_ms: per_gigabyte(received),
            sleeps: [sent, received].map(|it| it.sleeps / (it.bytes / 1e6)),
            copied: copied.map(|part| 100.0 * part),
        }))
    }
}

fn per_gigabyte(measured: Measured) -> f64 {
    measured.cpu.as_secs_f64() * 1e3 / (measured.bytes / 1e9)
}

/// The other end of a receiver.
fn write(mut stream: TcpStream, mut flow: Flow) -> io::Result<Measured> {
    let chunk = vec![1; flow.chunk];
    for _ in 0..flow.chunks() {
        stream.write_all(&chunk)?;
        flow.sent(&stream)?;
    }
    flow.finish()
}

/// The other end of a sender.
fn read(mut stream: TcpStream, mut flow: Flow) -> io::Result<Measured> {
    let mut buf = vec![0; CHUNK];
    loop {
        match stream.read(&mut buf)? {
            0 => return flow.finish(),
            bytes => flow.received(&stream, bytes)?,
        }
    }
}
