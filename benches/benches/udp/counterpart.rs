//! What is at the other end: streams that end, and peers that ask.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::{END, PEERS, QUESTION};

/// Ends a stream, also if the receiver's buffer, or that of the socket, is full now: until the receiver
/// is gone, and refuses.
pub fn end(socket: &UdpSocket) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        match socket.send(&[0; END]) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => break,
            _ => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// All peers ask anew with each answer. Gives how many of their questions had no answer.
pub fn ask(to: SocketAddr, length: Duration) -> io::Result<u64> {
    let peers = peers(to)?;
    let unanswered = ask_until(&peers, Instant::now() + length);
    // Whatever has happened: else the server waits for ever.
    end(&peers[0]);
    unanswered
}

fn ask_until(peers: &[UdpSocket], over: Instant) -> io::Result<u64> {
    for peer in peers {
        peer.send(&[0; QUESTION])?;
    }
    let mut answer = [0; QUESTION];
    let mut last = Instant::now();
    while Instant::now() < over {
        for peer in peers {
            match peer.recv(&mut answer) {
                Ok(_) => {
                    peer.send(&answer)?;
                    last = Instant::now();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        if last.elapsed() > Duration::from_secs(5) {
            return Err(io::Error::other("the server gives no answers"));
        }
    }
    let answered = answers(peers)?;
    Ok((peers.len() as u64).saturating_sub(answered))
}

/// One peer after the other sends, in turns, one every `pace`. Gives how many datagrams that were.
pub fn tell(to: SocketAddr, length: Duration, pace: Duration) -> io::Result<u64> {
    let peers = peers(to)?;
    let sent = tell_for(&peers, length, pace);
    end(&peers[0]);
    sent
}

fn tell_for(peers: &[UdpSocket], length: Duration, pace: Duration) -> io::Result<u64> {
    let begin = Instant::now();
    let mut sent = 0_u32;
    while begin.elapsed() < length {
        while begin.elapsed() < pace * sent {
            std::hint::spin_loop();
        }
        match peers[sent as usize % PEERS].send(&[0; QUESTION]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            told => {
                told?;
                sent += 1;
            }
        }
    }
    Ok(sent.into())
}

/// Answers that are still to come.
fn answers(peers: &[UdpSocket]) -> io::Result<u64> {
    std::thread::sleep(Duration::from_millis(20));
    let mut answered = 0;
    for peer in peers {
        while peer.recv(&mut [0; QUESTION]).is_ok() {
            answered += 1;
        }
    }
    Ok(answered)
}

fn peers(to: SocketAddr) -> io::Result<Vec<UdpSocket>> {
    let peer = || {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    (0..PEERS).map(|_| peer()).collect()
}
