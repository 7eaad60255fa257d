//! What is at the other end: streams that end, and peers that ask.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::{END, PEERS, QUESTION};

/// Ends a stream, also if the receiver's buffer is full now.
pub fn end(socket: &UdpSocket) {
    for _ in 0..20 {
        // Refused once the receiver is gone.
        if socket.send(&[0; END]).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// All peers ask anew with each answer. Gives how many of their questions had no answer.
pub fn ask(to: SocketAddr, length: Duration) -> io::Result<u64> {
    let peers = peers(to)?;
    let begin = Instant::now();
    for peer in &peers {
        peer.send(&[0; QUESTION])?;
    }
    let mut answer = [0; QUESTION];
    let mut last = Instant::now();
    while begin.elapsed() < length {
        for peer in &peers {
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
    let answered = answers(&peers)?;
    end(&peers[0]);
    Ok((peers.len() as u64).saturating_sub(answered))
}

/// One peer after the other sends, in turns, one every `pace`. Gives how many datagrams that were.
pub fn tell(to: SocketAddr, length: Duration, pace: Duration) -> io::Result<u64> {
    let peers = peers(to)?;
    let begin = Instant::now();
    let mut sent = 0_u32;
    while begin.elapsed() < length {
        while begin.elapsed() < pace * sent {
            std::hint::spin_loop();
        }
        peers[sent as usize % PEERS].send(&[0; QUESTION])?;
        sent += 1;
    }
    end(&peers[0]);
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
