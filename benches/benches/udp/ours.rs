//! `glommio::net::UdpSocket`.

use std::io;
use std::time::{Duration, Instant};

use glommio::LocalExecutor;
use glommio::net::{DatagramPool, ReceivedDatagrams, Segments, UdpSocket};
use glommio::timer::sleep;

use super::rows::{Clock, Timing};
use super::{DATAGRAM, END, SEGMENTS, bare};

/// Of the same size as the others have.
fn pool() -> DatagramPool {
    DatagramPool::new(64, DatagramPool::MAX_BYTES)
}

fn ours(socket: std::net::UdpSocket) -> io::Result<UdpSocket> {
    let socket = UdpSocket::from(socket);
    socket.set_gro(true)?;
    socket.set_receive_ecn(true)?;
    socket.set_receive_destination(true)?;
    socket.set_receive_timestamps(true)?;
    Ok(socket)
}

/// How many datagrams those are, and whether one of them was the last.
fn count(received: &mut Vec<ReceivedDatagrams>) -> (u64, bool) {
    let (mut datagrams, mut is_over) = (0, false);
    for buffer in received.drain(..) {
        if buffer.bytes().len() == END {
            is_over = true;
            continue;
        }
        datagrams += buffer.segments().len() as u64;
    }
    (datagrams, is_over)
}

pub fn receive(socket: std::net::UdpSocket) -> io::Result<(u64, Timing)> {
    receive_every(socket, Duration::ZERO)
}

/// Lets datagrams wait for so long at most, and takes them together.
pub fn receive_together(socket: std::net::UdpSocket) -> io::Result<(u64, Timing)> {
    receive_every(socket, Duration::from_micros(50))
}

fn receive_every(socket: std::net::UdpSocket, pause: Duration) -> io::Result<(u64, Timing)> {
    LocalExecutor::default().run(async {
        let socket = ours(socket)?;
        let (pool, mut received) = (pool(), Vec::new());
        socket.peek_from(&mut [0; 1]).await?;
        let clock = Clock::start();
        let mut datagrams = 0;
        loop {
            socket.recv_many(&pool, &mut received).await?;
            let (more, is_over) = count(&mut received);
            datagrams += more;
            if is_over {
                return Ok((datagrams, clock.stop()));
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
        }
    })
}

pub fn empty(length: Duration) -> io::Result<(u64, Timing)> {
    LocalExecutor::default().run(async {
        let socket = bare::socket()?;
        let fill = bare::Filling::of(&socket)?;
        let socket = ours(socket)?;
        let (pool, mut received) = (pool(), Vec::new());
        let begin = Instant::now();
        let (mut datagrams, mut timing) = (0, Timing::default());
        while begin.elapsed() < length {
            let mut left = fill.fill()?;
            datagrams += left;
            let clock = Clock::start();
            while left > 0 {
                socket.recv_many(&pool, &mut received).await?;
                left -= count(&mut received).0;
            }
            timing += clock.stop();
        }
        Ok((datagrams, timing))
    })
}

/// One datagram by each call, without GRO.
pub fn empty_singly(length: Duration) -> io::Result<(u64, Timing)> {
    LocalExecutor::default().run(async {
        let socket = bare::socket()?;
        let fill = bare::Filling::of(&socket)?;
        let socket = UdpSocket::from(socket);
        socket.set_gro(false)?;
        let mut buffer = vec![0; DATAGRAM];
        let begin = Instant::now();
        let (mut datagrams, mut timing) = (0, Timing::default());
        while begin.elapsed() < length {
            let left = fill.fill()?;
            datagrams += left;
            let clock = Clock::start();
            for _ in 0..left {
                socket.recv_from(&mut buffer).await?;
            }
            timing += clock.stop();
        }
        Ok((datagrams, timing))
    })
}

pub fn send(socket: std::net::UdpSocket, length: Duration) -> io::Result<u64> {
    LocalExecutor::default().run(async {
        let socket = UdpSocket::from(socket);
        let bytes = vec![7; DATAGRAM * SEGMENTS];
        let segments = Segments::new(&bytes, DATAGRAM);
        let begin = Instant::now();
        let mut sent = 0;
        while begin.elapsed() < length {
            socket.send_segments(&segments).await?;
            sent += SEGMENTS as u64;
        }
        Ok(sent)
    })
}

pub fn answer(socket: std::net::UdpSocket) -> io::Result<(u64, Timing)> {
    LocalExecutor::default().run(answer_all(ours(socket)?))
}

/// As [`answer`], by a socket that is told nothing of what it receives.
pub fn answer_untold(socket: std::net::UdpSocket) -> io::Result<(u64, Timing)> {
    let socket = UdpSocket::from(socket);
    socket.set_gro(false)?;
    socket.set_receive_ecn(false)?;
    socket.set_receive_destination(false)?;
    socket.set_receive_timestamps(false)?;
    LocalExecutor::default().run(answer_all(socket))
}

async fn answer_all(socket: UdpSocket) -> io::Result<(u64, Timing)> {
    let (pool, mut received) = (pool(), Vec::new());
    socket.peek_from(&mut [0; 1]).await?;
    let clock = Clock::start();
    let mut datagrams = 0;
    loop {
        socket.recv_many(&pool, &mut received).await?;
        if received.iter().any(|buffer| buffer.bytes().len() == END) {
            return Ok((datagrams, clock.stop()));
        }
        let answers: Vec<_> = (received.iter())
            .map(|it| Segments::new(it.bytes(), it.segment_size()).to(it.from()))
            .collect();
        let mut left = &answers[..];
        while !left.is_empty() {
            left = &left[socket.send_many(left).await?..];
        }
        datagrams += answers.len() as u64;
        received.clear();
    }
}
