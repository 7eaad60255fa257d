//! Thousands of connections over a network that loses datagrams, from clients that keep moving to
//! other addresses, for as long as one likes. Every byte comes back and is compared.
//!
//! ```console
//! $ cargo run --release -p glommio-quic --features timing-wheel --example soak -- \
//!     [--connections 10000] [--seconds 300] [--loss-ppm 10000] [--seed 1]
//! ```
//!
//! ```text
//!   clients (100 endpoints,     proxy             2 shards
//!   one executor) ─────────▶ loses, and gives ─────────▶ echo
//!        │ move                each address of
//!        ▼ once in a while     a client its own
//! ```
//!
//! It fails, with exit code 1, if a byte differs, a connection is lost, a stream does not come back
//! within two minutes, the kernel steers a packet to the wrong shard, or a connection is left at
//! the end.

mod client;
#[path = "../../tests/quic/proxy.rs"]
mod proxy;
mod server;

use glommio::{LocalExecutorBuilder, Placement};
use glommio_quic::rustls::pki_types::CertificateDer;
use glommio_quic::rustls::pki_types::pem::PemObject;
use glommio_quic::{TransportConfig, VarInt};
use proxy::Proxy;
use std::env;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const AUTHORITY: &[u8] = include_bytes!("../../tests/keys/authority.pem");

#[derive(Clone, Copy, Debug)]
struct Options {
    connections: usize,
    time: Duration,
    loss_ppm: u32,
    seed: u64,
}

/// What has happened so far.
#[derive(Debug, Default)]
struct Counts {
    connected: AtomicU64,
    streams: AtomicU64,
    bytes: AtomicU64,
    datagrams: AtomicU64,
    moves: AtomicU64,
    failures: AtomicU64,
}

impl Counts {
    fn add(count: &AtomicU64, more: u64) {
        count.fetch_add(more, Ordering::Relaxed);
    }

    fn fail(&self, what: &str) {
        if self.failures.fetch_add(1, Ordering::Relaxed) < 20 {
            eprintln!("FAILED: {what}");
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(failures) => {
            eprintln!("{failures} failures");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<u64> {
    let options = options()?;
    println!("{}\n{options:?}", support::machine::describe());
    let counts = Arc::new(Counts::default());
    let servers = server::start()?;
    let proxy = Proxy::start(servers.address(), options.loss_ppm, options.seed)?;
    let address = proxy.address();

    // Gone with the clients.
    let (alive, is_over) = mpsc::channel::<()>();
    let clients = LocalExecutorBuilder::new(Placement::Unbound).spawn({
        let counts = Arc::clone(&counts);
        async move || {
            let result = client::run(options, address, counts).await;
            drop(alive);
            result
        }
    })?;
    let began = Instant::now();
    while is_over.recv_timeout(Duration::from_secs(5)) == Err(RecvTimeoutError::Timeout) {
        report(&counts, &proxy, began);
    }
    if let Err(error) = clients.join()? {
        counts.fail(&error.to_string());
    }
    report(&counts, &proxy, began);
    servers.stop(&counts)?;
    Ok(counts.failures.load(Ordering::Relaxed))
}

fn report(counts: &Counts, proxy: &Proxy, began: Instant) {
    let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
    let resident = support::process::resident_bytes().unwrap_or(0) >> 20;
    println!(
        "{:>5} s  connected {:>6}  streams {:>8}  {:>7} MB  datagrams {:>7}  moves {:>5}  \
         lost {:>7} of {:>9} packets  {resident} MB resident  failures {}",
        began.elapsed().as_secs(),
        count(&counts.connected),
        count(&counts.streams),
        count(&counts.bytes) >> 20,
        count(&counts.datagrams),
        count(&counts.moves),
        proxy.lost(),
        proxy.lost() + proxy.passed(),
        count(&counts.failures),
    );
}

fn options() -> Result<Options> {
    let mut options = Options {
        connections: 10_000,
        time: Duration::from_secs(300),
        loss_ppm: 10_000,
        seed: 1,
    };
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{name} needs a value"))?;
        match &*name {
            "--connections" => options.connections = value.parse()?,
            "--seconds" => options.time = Duration::from_secs(value.parse()?),
            "--loss-ppm" => options.loss_ppm = value.parse()?,
            "--seed" => options.seed = value.parse()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(options)
}

/// Of both sides.
fn transport() -> Result<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_secs(120).try_into()?));
    transport.keep_alive_interval(Some(Duration::from_secs(15)));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(16));
    Ok(Arc::new(transport))
}

fn authority() -> Result<CertificateDer<'static>> {
    Ok(CertificateDer::from_pem_slice(AUTHORITY)?)
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    socket2::SockRef::from(&socket).set_recv_buffer_size(4 << 20)?;
    Ok(socket)
}
