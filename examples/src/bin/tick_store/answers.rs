//! What clients are told, and how it is sent.

use std::fmt::{self, Write};
use std::io;
use std::ops::Range;

use futures_lite::AsyncWriteExt;
use futures_lite::io::WriteHalf;
use glommio::channels::local_channel::LocalReceiver;
use glommio::net::TcpStream;
use glommio::yield_if_needed;
use timelog::durable::ShardCommit;
use timelog::{Snapshots, Ts};

/// Symbol, price and size.
pub type Trade = ([u8; 8], i64, u32);

/// What a client is told, now or when it is on the device.
pub enum Answer {
    Now(String),
    Committed(ShardCommit<Trade>),
    Rows(Snapshots<Trade>, Range<Ts>),
    Windows(Snapshots<Trade>, Range<Ts>, Ts),
}

/// Sends the answers in their order.
pub async fn send(
    mut client: WriteHalf<TcpStream>,
    answers: LocalReceiver<Answer>,
) -> io::Result<()> {
    while let Some(answer) = answers.recv().await {
        match answer {
            Answer::Now(text) => client.write_all(text.as_bytes()).await?,
            Answer::Committed(commit) => {
                let text = match commit.await {
                    Ok(seq) => format!("OK {}\n", seq.0),
                    Err(error) => format!("ERROR {error}\n"),
                };
                client.write_all(text.as_bytes()).await?;
            }
            Answer::Rows(snapshot, range) => {
                let mut output = Output::to(&mut client);
                for (ts, (symbol, price, size)) in snapshot.range(range) {
                    let symbol = String::from_utf8_lossy(symbol);
                    let symbol = symbol.trim_end_matches('\0');
                    output
                        .line(format_args!("{ts} {symbol} {price} {size}"))
                        .await?;
                }
                output.end().await?;
            }
            Answer::Windows(snapshot, range, width) => {
                let mut output = Output::to(&mut client);
                let mut window: Option<Window> = None;
                for (ts, trade) in snapshot.range(range) {
                    let start = ts.div_euclid(width).saturating_mul(width);
                    if let Some(done) = window.take_if(|it| it.start != start) {
                        output.line(format_args!("{done}")).await?;
                    }
                    window
                        .get_or_insert_with(|| Window::new(start, trade))
                        .add(trade);
                }
                if let Some(done) = window {
                    output.line(format_args!("{done}")).await?;
                }
                output.end().await?;
            }
        }
    }
    client.close().await
}

/// What is known of the trades of a stretch of time.
struct Window {
    start: Ts,
    trades: u64,
    low: i64,
    high: i64,
    open: i64,
    close: i64,
    size: u64,
}

impl Window {
    fn new(start: Ts, &(_, price, _): &Trade) -> Self {
        Window {
            start,
            trades: 0,
            low: price,
            high: price,
            open: price,
            close: price,
            size: 0,
        }
    }

    fn add(&mut self, &(_, price, size): &Trade) {
        self.trades += 1;
        self.low = self.low.min(price);
        self.high = self.high.max(price);
        self.close = price;
        self.size += u64::from(size);
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Window {
            start,
            trades,
            low,
            high,
            open,
            close,
            size,
        } = self;
        write!(f, "{start} {trades} {low} {high} {open} {close} {size}")
    }
}

/// Lines that are sent in pieces, and counted.
struct Output<'c> {
    client: &'c mut WriteHalf<TcpStream>,
    text: String,
    lines: u64,
}

impl<'c> Output<'c> {
    fn to(client: &'c mut WriteHalf<TcpStream>) -> Self {
        Output {
            client,
            text: String::new(),
            lines: 0,
        }
    }

    async fn line(&mut self, line: fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.text, "{line}").expect("a string takes everything");
        self.lines += 1;
        if self.text.len() >= PIECE_BYTES {
            self.client.write_all(self.text.as_bytes()).await?;
            self.text.clear();
        }
        // Others have their turn, however many rows there are.
        yield_if_needed().await;
        Ok(())
    }

    async fn end(mut self) -> io::Result<()> {
        writeln!(self.text, "END {}", self.lines).expect("a string takes everything");
        self.client.write_all(self.text.as_bytes()).await
    }
}

/// Text that is sent at once.
const PIECE_BYTES: usize = 32 << 10;
