//! Sends HTTP requests at a given rate, whatever the server does, as independent clients would.
//!
//! ```console
//! $ cargo run --release -p load --bin http_load -- --rate 1500 --seconds 10 --path /compute/500
//! ```
//!
//! Requests begin at random times of that rate (a Poisson process), each on a connection that is
//! idle, or a new one. A latency counts from the time at which a request was to begin, so that a
//! client that is kept waiting does not hide it.

#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::Parser;
use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{ConnectionLimit, TcpStream};
use glommio::sync::Gate;
use glommio::timer::sleep_until;
use glommio::{LocalExecutorBuilder, Placement};
use hdrhistogram::Histogram;

/// Sends HTTP requests at a given rate.
#[derive(Clone, Debug, Parser)]
#[command(name = "http_load")]
struct Options {
    #[arg(long, default_value = "127.0.0.1:8080")]
    address: SocketAddr,

    #[arg(long, default_value = "/")]
    path: String,

    /// Requests per second.
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,

    /// How long requests begin.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,

    /// Connections at the most. When all are busy, requests wait for one.
    #[arg(long, default_value_t = 10_000)]
    connections: usize,

    /// CPU of the client.
    #[arg(long, default_value_t = 1)]
    cpu: usize,
}

/// What has come of the requests.
struct Outcome {
    served: Histogram<u64>,
    refused: Histogram<u64>,
    failed: u64,
}

/// Idle connections, and what they found.
struct Client {
    head: String,
    address: SocketAddr,
    idle: RefCell<Vec<TcpStream>>,
    limit: ConnectionLimit,
    outcome: RefCell<Outcome>,
}

impl Client {
    /// One request that was to begin at `begin`.
    async fn request(&self, begin: Instant) {
        let _place = self.limit.place().await;
        let answer = self.exchange().await;
        let latency_us = begin.elapsed().as_micros() as u64;
        let mut outcome = self.outcome.borrow_mut();
        match answer {
            Ok(200) => outcome.served.saturating_record(latency_us),
            Ok(503) => outcome.refused.saturating_record(latency_us),
            _ => outcome.failed += 1,
        }
    }

    async fn exchange(&self) -> io::Result<u16> {
        let idle = self.idle.borrow_mut().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => TcpStream::connect(self.address).await?,
        };
        stream.write_all(self.head.as_bytes()).await?;
        let mut answer = Vec::new();
        let mut buffer = [0; 1024];
        loop {
            match stream.read(&mut buffer).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => answer.extend_from_slice(&buffer[..count]),
            }
            if let Some(status) = whole(&answer) {
                self.idle.borrow_mut().push(stream);
                return status;
            }
        }
    }
}

/// The status, if `answer` is there as a whole.
fn whole(answer: &[u8]) -> Option<io::Result<u16>> {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let length = head
        .lines()
        .find_map(|it| it.strip_prefix("content-length: "));
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
    match (length.and_then(|it| it.trim().parse().ok()), status) {
        (Some(length), Some(status)) => (body.len() >= length).then_some(Ok(status)),
        _ => Some(Err(io::ErrorKind::InvalidData.into())),
    }
}

async fn load(options: Options) -> Result<(), Box<dyn Error>> {
    let histogram = || Histogram::new_with_bounds(1, 600_000_000, 3);
    let outcome = Outcome {
        served: histogram()?,
        refused: histogram()?,
        failed: 0,
    };
    let client = Rc::new(Client {
        head: format!("GET {} HTTP/1.1\r\nhost: localhost\r\n\r\n", options.path),
        address: options.address,
        idle: RefCell::default(),
        limit: ConnectionLimit::new(options.connections),
        outcome: RefCell::new(outcome),
    });
    let (begin, requests) = (Instant::now(), Gate::new());
    let mut at_s = 0.0;
    while at_s < options.seconds {
        let at = begin + Duration::from_secs_f64(at_s);
        sleep_until(at).await;
        let client = Rc::clone(&client);
        let request = requests.spawn(async move { client.request(at).await })?;
        drop(request.detach());
        at_s -= (1.0 - fastrand::f64()).ln() / options.rate;
    }
    requests.close().await?;
    let outcome = client.outcome.borrow();
    let ms = |of: &Histogram<u64>, q| of.value_at_quantile(q) as f64 / 1e3;
    for (name, of) in [("served", &outcome.served), ("refused", &outcome.refused)] {
        println!(
            "{name}: {} ({:.0}/s), p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
            of.len(),
            of.len() as f64 / begin.elapsed().as_secs_f64(),
            ms(of, 0.5),
            ms(of, 0.99),
            of.max() as f64 / 1e3
        );
    }
    println!("failed: {}", outcome.failed);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if !(options.rate > 0.0 && options.seconds.is_finite()) {
        return Err("--rate must be above 0, and --seconds a number".into());
    }
    let executor = LocalExecutorBuilder::new(Placement::Fixed(options.cpu)).make()?;
    executor.run(load(options))
}
