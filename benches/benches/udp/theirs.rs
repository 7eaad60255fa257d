//! tokio, with quinn-udp on its sockets, as quinn uses them.

use std::io::{self, IoSliceMut};
use std::time::{Duration, Instant};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::rows::{Clock, Timing};
use super::{DATAGRAM, END, SEGMENTS, bare};

struct Theirs {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl Theirs {
    fn new(socket: std::net::UdpSocket) -> io::Result<Theirs> {
        let state = UdpSocketState::new((&socket).into())?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        Ok(Theirs { socket, state })
    }

    async fn receive(
        &self,
        buffers: &mut [Vec<u8>],
        metas: &mut [RecvMeta; BATCH_SIZE],
    ) -> io::Result<usize> {
        loop {
            self.socket.readable().await?;
            let mut slices = buffers.iter_mut();
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(slices.next().expect("as many")));
            let received = self.socket.try_io(Interest::READABLE, || {
                self.state.recv((&self.socket).into(), &mut slices, metas)
            });
            match received {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received,
            }
        }
    }

    async fn send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        loop {
            self.socket.writable().await?;
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                self.state.try_send((&self.socket).into(), transmit)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                sent => return sent,
            }
        }
    }
}

fn run<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    Ok(runtime.block_on(future))
}

fn memory() -> (Vec<Vec<u8>>, [RecvMeta; BATCH_SIZE]) {
    let metas = std::array::from_fn(|_| RecvMeta::default());
    (vec![vec![0; 65_535]; BATCH_SIZE], metas)
}

/// How many datagrams those are, and whether one of them was the last.
fn count(metas: &[RecvMeta]) -> (u64, bool) {
    let (mut datagrams, mut is_over) = (0, false);
    for meta in metas {
        if meta.len == END {
            is_over = true;
            continue;
        }
        datagrams += meta.len.div_ceil(meta.stride) as u64;
    }
    (datagrams, is_over)
}

pub fn receive(socket: std::net::UdpSocket) -> io::Result<(u64, Timing)> {
    run(async {
        let socket = Theirs::new(socket)?;
        let (mut buffers, mut metas) = memory();
        socket.socket.peek_from(&mut [0; 1]).await?;
        let clock = Clock::start();
        let mut datagrams = 0;
        loop {
            let received = socket.receive(&mut buffers, &mut metas).await?;
            let (more, is_over) = count(&metas[..received]);
            datagrams += more;
            if is_over {
                return Ok((datagrams, clock.stop()));
            }
        }
    })?
}

pub fn empty(length: Duration) -> io::Result<(u64, Timing)> {
    run(async {
        let socket = bare::socket()?;
        let fill = bare::Filling::of(&socket)?;
        let socket = Theirs::new(socket)?;
        let (mut buffers, mut metas) = memory();
        let begin = Instant::now();
        let (mut datagrams, mut timing) = (0, Timing::default());
        while begin.elapsed() < length {
            let mut left = fill.fill()?;
            datagrams += left;
            let clock = Clock::start();
            while left > 0 {
                let received = socket.receive(&mut buffers, &mut metas).await?;
                left -= count(&metas[..received]).0;
            }
            timing += clock.stop();
        }
        Ok((datagrams, timing))
    })?
}

pub fn send(socket: std::net::UdpSocket, length: Duration) -> io::Result<u64> {
    run(async {
        let to = socket.peer_addr()?;
        let socket = Theirs::new(socket)?;
        let bytes = vec![7; DATAGRAM * SEGMENTS];
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: &bytes,
            segment_size: Some(DATAGRAM),
            src_ip: None,
        };
        let begin = Instant::now();
        let mut sent = 0;
        while begin.elapsed() < length {
            socket.send(&transmit).await?;
            sent += SEGMENTS as u64;
        }
        Ok(sent)
    })?
}

pub fn answer(socket: std::net::UdpSocket) -> io::Result<(u64, Timing)> {
    run(async {
        let socket = Theirs::new(socket)?;
        let (mut buffers, mut metas) = memory();
        socket.socket.peek_from(&mut [0; 1]).await?;
        let clock = Clock::start();
        let mut datagrams = 0;
        loop {
            let received = socket.receive(&mut buffers, &mut metas).await?;
            for (meta, buffer) in metas[..received].iter().zip(&buffers) {
                if meta.len == END {
                    return Ok((datagrams, clock.stop()));
                }
                for question in buffer[..meta.len].chunks(meta.stride) {
                    let transmit = Transmit {
                        destination: meta.addr,
                        ecn: None,
                        contents: question,
                        segment_size: None,
                        src_ip: None,
                    };
                    socket.send(&transmit).await?;
                    datagrams += 1;
                }
            }
        }
    })?
}
