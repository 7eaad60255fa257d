//! Errors that come in between datagrams: a socket that has sent to closed ports goes on receiving.

use std::collections::BTreeSet;
use std::net;
use std::sync::atomic::AtomicU64;

use glommio::net::DatagramPool;
use nix::sys::socket::{MsgFlags, recv, setsockopt, sockopt};

use super::{io_kind, run, skipped};
use crate::common::prelude::*;

/// As many as one call takes.
const BATCH: u64 = 32;

/// Waiting for the receiver, at the most: few enough for the receive buffer.
const WAITING: u64 = 100;

/// Until then, some error has come in the middle of a batch, unless there is one CPU.
const MOST: u64 = 300_000;

/// What the threads tell each other.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    received: AtomicU64,
    is_over: AtomicBool,
}

impl Progress {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Ends the threads, also if an assertion fails.
struct End(Arc<Progress>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

/// Sends numbers in order, no more than the receiver's buffer takes.
fn send_numbers(to: SocketAddr, progress: &Progress) -> io::Result<()> {
    let socket = net::UdpSocket::bind("127.0.0.1:0")?;
    let mut next = 0_u64;
    while !progress.is_over() {
        let received = progress.received.load(Ordering::Acquire);
        if next.saturating_sub(received) >= WAITING {
            thread::yield_now();
            continue;
        }
        socket.send_to(&next.to_le_bytes(), to)?;
        next += 1;
        progress.sent.store(next, Ordering::Release);
    }
    Ok(())
}

/// Each of these is refused, which is the receiver's next error, if not the next one's here.
fn provoke(socket: &net::UdpSocket, closed: SocketAddr, progress: &Progress) {
    while !progress.is_over() {
        for _ in 0..20 {
            let _ = socket.send_to(b"to a closed port", closed);
        }
        // What the refused datagrams were takes space of the receive buffer until it is read.
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        while recv(socket.as_raw_fd(), &mut [0; 64], flags).is_ok() {}
    }
}

#[run_test]
async fn an_error_in_the_middle_of_a_batch_loses_no_datagram() {
    let socket = net::UdpSocket::bind("127.0.0.1:0")?;
    // A socket without a peer has errors reported, too.
    setsockopt(&socket, sockopt::Ipv4RecvErr, &true).map_err(io::Error::from)?;
    let address = socket.local_addr()?;
    let closed = net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let progress = Arc::new(Progress::default());
    let end = End(Arc::clone(&progress));
    let refused = {
        let (socket, progress) = (socket.try_clone()?, Arc::clone(&progress));
        thread::spawn(move || provoke(&socket, closed, &progress))
    };
    let sender = {
        let progress = Arc::clone(&progress);
        thread::spawn(move || send_numbers(address, &progress))
    };

    let receiver = UdpSocket::from(socket);
    let pool = DatagramPool::new(64, 100);
    let (mut received, mut errors, mut cut_short) = (Vec::new(), 0, 0);
    let (mut next, mut early) = (0_u64, BTreeSet::new());
    while (errors == 0 || cut_short < 20) && next < MOST {
        // A datagram may be here before its sender has said so.
        let waiting = progress.sent.load(Ordering::Acquire).saturating_sub(next);
        match receiver.recv_many(&pool, &mut received).await {
            Ok(count) if waiting >= BATCH && (count as u64) < BATCH => cut_short += 1,
            Ok(_) => {}
            Err(error) => {
                assert_eq!(io_kind(&error), io::ErrorKind::ConnectionRefused);
                assert!(received.is_empty(), "what was received is returned");
                errors += 1;
            }
        }
        // A sender that moves to another CPU may overtake itself.
        for buffer in received.drain(..) {
            let number = u64::from_le_bytes(buffer.bytes().try_into().expect("a number"));
            assert!(number >= next && early.insert(number), "once each");
        }
        while early.remove(&next) {
            next += 1;
        }
        assert_eq!(pool.available(), pool.buffers());
        progress.received.store(next, Ordering::Release);
    }
    assert_eq!(receiver.receive_drops()?, 0);
    drop(end);
    sender.join().expect("it does not panic")?;
    refused.join().expect("it does not panic");
    assert!(errors > 0, "none came up in {next} datagrams");
    if cut_short == 0 {
        skipped("no error has come in the middle of a batch");
    }
    Ok(())
}
