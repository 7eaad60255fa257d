//! A UDP server that sends each datagram back.
//!
//! ```console
//! $ cargo run --release -p examples --bin udp_echo -- --port 7300
//! $ echo hello | nc -u -w1 127.0.0.1 7300
//! hello
//! ```
//!
//! Ctrl-C ends it with a line of statistics.

#![forbid(unsafe_code)]

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;

use clap::Parser;
use futures_lite::future::or;
use glommio::net::UdpSocket;
use glommio::sync::{CancellationToken, ForeignCancellation};
use glommio::{LocalExecutorBuilder, Placement};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Sends datagrams back.
#[derive(Debug, Parser)]
#[command(name = "udp_echo")]
struct Options {
    /// Port to listen on; 0 takes a free one.
    #[arg(long, default_value_t = 7300)]
    port: u16,
}

fn main() -> Result<(), Box<dyn Error>> {
    let Options { port } = Options::parse();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let shutdown = CancellationToken::new();
    let ending = shutdown.foreign_child();
    let (report, listening) = mpsc::channel();
    let executor = LocalExecutorBuilder::new(Placement::Unbound)
        .name("udp_echo")
        .spawn(move || run(port, ending, report))?;
    if let Ok(address) = listening.recv() {
        println!("listening on {address}");
        signals.forever().next();
        shutdown.cancel();
    }
    // If it could not listen, its result says why.
    Ok(executor.join()??)
}

async fn run(
    port: u16,
    ending: ForeignCancellation,
    report: mpsc::Sender<SocketAddr>,
) -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    report
        .send(socket.local_addr()?)
        .map_err(io::Error::other)?;
    let (datagrams, bytes) = (Cell::new(0_u64), Cell::new(0_u64));
    let ending = ending.attach();
    let over = async {
        ending.cancelled().await;
        Ok::<(), io::Error>(())
    };
    let echo = async {
        let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
        loop {
            let (length, sender) = socket.recv_from(&mut buffer).await?;
            match socket.send_to(&buffer[..length], sender).await {
                Ok(_) => {
                    datagrams.set(datagrams.get() + 1);
                    bytes.set(bytes.get() + length as u64);
                }
                // Datagrams may be lost, and one peer must not end the others' service.
                Err(error) => eprintln!("cannot answer {sender}: {error}"),
            }
        }
    };
    or(over, echo).await?;
    println!("datagrams: {}, bytes: {}", datagrams.get(), bytes.get());
    Ok(())
}

const DATAGRAM_BYTES_MAX: usize = 65_535;
