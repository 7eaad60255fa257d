//! A flood of packets that look like the first of a connection, and what a server's other tasks notice of it.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use support::process::thread_time;

use crate::Result;

/// How often a sleeper of the server had a turn, and the longest CPU time of its thread from one turn to the next, in
/// nanoseconds.
static TURNS: AtomicU64 = AtomicU64::new(0);
static LONGEST: AtomicU64 = AtomicU64::new(0);

const LASTS: Duration = Duration::from_secs(3);
/// Of a datagram, and datagrams of a train.
const LENGTH: usize = 1200;
const TRAIN: usize = 50;

/// A turn of the sleeper. What it gives is given to the next.
pub fn turn(before: Duration) -> Duration {
    let now = thread_time();
    LONGEST.fetch_max((now - before).as_nanos() as u64, Ordering::Relaxed);
    TURNS.fetch_add(1, Ordering::Relaxed);
    now
}

/// The longest CPU time between turns, in milliseconds, and turns per second.
pub fn send(server: SocketAddr) -> Result<[f64; 2]> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server)?;
    setsockopt(&socket, sockopt::UdpGsoSegment, &(LENGTH as i32))?;
    let mut random = 0x5eed_u64;
    let mut train = vec![0; TRAIN * LENGTH];
    let begin = Instant::now();
    while begin.elapsed() < LASTS {
        for packet in train.chunks_mut(LENGTH) {
            // Version 1, connection IDs of eight bytes, no token, and a length that fits.
            packet[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
            for byte in &mut packet[6..24] {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                *byte = (random >> 56) as u8;
            }
            packet[14] = 8;
            packet[23] = 0;
            let left = (LENGTH - 26) as u16 | 0x4000;
            packet[24..26].copy_from_slice(&left.to_be_bytes());
        }
        socket.send(&train)?;
    }
    let [turns, longest] = [&TURNS, &LONGEST].map(|it| it.load(Ordering::Relaxed) as f64);
    Ok([longest / 1e6, turns / begin.elapsed().as_secs_f64()])
}
