//! One end of a connection that gives up what it does at random, and loses nothing by it.

use std::io::{IoSlice, IoSliceMut};
use std::task::ready;

use futures_lite::io::{AsyncBufRead, AsyncRead};
use glommio::net::{NonBuffered, Preallocated, RxBuf};

use super::{Patience, bytes_at};
use crate::Result;
use crate::common::prelude::*;

/// A timeout, or none.
pub(crate) fn any_limit(numbers: &mut Numbers) -> Option<Duration> {
    (numbers.below(3) > 0).then(|| Duration::from_micros(1 + numbers.below(2000)))
}

/// The waits of one direction: none may be said to have lasted too long before it has.
#[derive(Default)]
pub(super) struct Waits {
    limit: Option<Duration>,
    /// Not after the beginning of the wait under way, which may be one that was given up.
    since: Option<Instant>,
}

impl Waits {
    pub(super) fn new(limit: Option<Duration>) -> Self {
        Waits { limit, since: None }
    }

    /// The stream got the limit at `now` or later.
    pub(super) fn set_limit(&mut self, limit: Option<Duration>, now: Instant) {
        self.limit = limit;
        // A wait under way begins anew.
        self.since = self.since.map(|_| now);
    }

    pub(super) fn begin(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// What a try brought, if it was neither given up nor out of time.
    pub(super) fn end<T>(&mut self, tried: Option<io::Result<T>>) -> Option<T> {
        let since = self.since.expect("it has begun");
        match tried? {
            Ok(done) => {
                self.since = None;
                Some(done)
            }
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
                let limit = self.limit.expect("without a limit nothing lasts too long");
                assert!(since.elapsed() >= limit, "{:?}", since.elapsed());
                self.since = None;
                None
            }
        }
    }
}

/// What streams with and without a buffer do differently.
pub(super) trait Kind: RxBuf + Unpin + Sized {
    /// Takes up to `size` bytes, through the buffer if there is one.
    fn poll_take(
        stream: &mut TcpStream<Self>,
        cx: &mut Context<'_>,
        size: usize,
    ) -> Poll<io::Result<Vec<u8>>>;

    /// Whether [`migrate`](Self::migrate) does anything.
    const MIGRATES: bool;

    /// Takes the connection from the executor and gives it back, if that can be done.
    fn migrate(stream: TcpStream<Self>) -> TcpStream<Self>;
}

impl Kind for NonBuffered {
    fn poll_take(
        stream: &mut TcpStream,
        cx: &mut Context<'_>,
        size: usize,
    ) -> Poll<io::Result<Vec<u8>>> {
        let mut bytes = vec![0; size];
        let count = ready!(Pin::new(stream).poll_read(cx, &mut bytes))?;
        bytes.truncate(count);
        Poll::Ready(Ok(bytes))
    }

    const MIGRATES: bool = true;

    fn migrate(stream: TcpStream) -> TcpStream {
        stream.into_accepted().bind_to_executor()
    }
}

impl Kind for Preallocated {
    fn poll_take(
        stream: &mut TcpStream<Preallocated>,
        cx: &mut Context<'_>,
        size: usize,
    ) -> Poll<io::Result<Vec<u8>>> {
        let mut stream = Pin::new(stream);
        let filled = ready!(stream.as_mut().poll_fill_buf(cx))?;
        let bytes = filled[..size.min(filled.len())].to_vec();
        stream.consume(bytes.len());
        Poll::Ready(Ok(bytes))
    }

    const MIGRATES: bool = false;

    fn migrate(stream: TcpStream<Preallocated>) -> TcpStream<Preallocated> {
        stream
    }
}

/// One end of a connection.
pub(super) struct Endpoint<B: RxBuf> {
    stream: TcpStream<B>,
    numbers: Numbers,
    reads: Waits,
    writes: Waits,
    outgoing: Transfer,
    incoming: Transfer,
}

/// One direction of a connection: the stream of bytes of a seed.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub(super) seed: u64,
    pub(super) length: usize,
    pub(super) done: usize,
    has_ended: bool,
}

impl Transfer {
    pub(super) fn new(seed: u64, length: usize) -> Self {
        Transfer {
            seed,
            length,
            done: 0,
            has_ended: false,
        }
    }

    pub(super) fn is_next(&self, bytes: &[u8]) -> bool {
        bytes == bytes_at(self.seed, self.done, bytes.len())
    }

    /// The next `size` bytes, or what is left.
    pub(super) fn next(&self, size: usize) -> Vec<u8> {
        bytes_at(self.seed, self.done, size.min(self.length - self.done))
    }
}

impl<B: Kind> Endpoint<B> {
    pub(super) fn new(
        stream: TcpStream<B>,
        seed: u64,
        outgoing: Transfer,
        incoming: Transfer,
    ) -> Self {
        Endpoint {
            stream,
            numbers: Numbers::new(seed),
            reads: Waits::default(),
            writes: Waits::default(),
            outgoing,
            incoming,
        }
    }

    /// Sends and receives all there is, in both directions.
    pub(super) async fn exchange(mut self) -> Result {
        while !(self.outgoing.has_ended && self.incoming.has_ended) {
            match self.numbers.below(32) {
                0 => self.set_limits()?,
                1 if B::MIGRATES => {
                    self.stream = B::migrate(self.stream);
                    (self.reads, self.writes) = Default::default();
                }
                2 => sleep(Duration::from_micros(self.numbers.below(300))).await,
                3..6 => executor().yield_task_queue_now().await,
                6..10 => self.peek().await,
                10..21 => self.read().await,
                _ => self.write().await?,
            }
        }
        let end = self.stream.peek(&mut [0; 8]).await?;
        assert_eq!(end, 0, "nothing comes after the end");
        Ok(())
    }

    fn set_limits(&mut self) -> Result {
        let (limit, now) = (any_limit(&mut self.numbers), Instant::now());
        if self.numbers.below(2) == 0 {
            self.stream.set_read_timeout(limit)?;
            self.reads.set_limit(limit, now);
        } else {
            self.stream.set_write_timeout(limit)?;
            self.writes.set_limit(limit, now);
        }
        Ok(())
    }

    async fn peek(&mut self) {
        let patience = Patience::any(&mut self.numbers);
        let mut bytes = vec![0; 1 + self.numbers.below(9000) as usize];
        if let Some(count) = patience.drive(self.stream.peek(&mut bytes)).await {
            let count = count.expect("a peek has no limit, and the peer is honest");
            assert!(self.incoming.is_next(&bytes[..count]));
            if count == 0 {
                assert_eq!(self.incoming.done, self.incoming.length);
            }
        }
    }

    async fn read(&mut self) {
        let patience = Patience::any(&mut self.numbers);
        let size = 1 + self.numbers.below(20_000) as usize;
        self.reads.begin();
        let mut bytes = vec![0; size];
        let stream = &mut self.stream;
        let tried = match self.numbers.below(3) {
            0 => patience.drive(stream.read(&mut bytes)).await,
            1 => {
                let (left, right) = bytes.split_at_mut(size / 3);
                let mut slices = [IoSliceMut::new(left), IoSliceMut::new(right)];
                patience.drive(stream.read_vectored(&mut slices)).await
            }
            _ => {
                let taken = poll_fn(|cx| B::poll_take(stream, cx, size));
                let taken = patience.drive(taken).await;
                taken.map(|taken| {
                    taken.map(|taken| {
                        bytes[..taken.len()].copy_from_slice(&taken);
                        taken.len()
                    })
                })
            }
        };
        if let Some(count) = self.reads.end(tried) {
            assert!(self.incoming.is_next(&bytes[..count]));
            self.incoming.done += count;
            if count == 0 {
                assert_eq!(self.incoming.done, self.incoming.length);
                self.incoming.has_ended = true;
            }
        }
    }

    async fn write(&mut self) -> Result {
        let outgoing = &mut self.outgoing;
        if outgoing.done == outgoing.length {
            if !outgoing.has_ended {
                self.stream.close().await?;
                outgoing.has_ended = true;
            }
            return Ok(());
        }
        let patience = Patience::any(&mut self.numbers);
        let size = 1 + self.numbers.below(60_000) as usize;
        let bytes = outgoing.next(size);
        self.writes.begin();
        let tried = if self.numbers.below(2) == 0 {
            patience.drive(self.stream.write(&bytes)).await
        } else {
            let (left, right) = bytes.split_at(bytes.len() / 3);
            let slices = [IoSlice::new(left), IoSlice::new(right)];
            patience.drive(self.stream.write_vectored(&slices)).await
        };
        if let Some(count) = self.writes.end(tried) {
            assert!(0 < count && count <= bytes.len());
            self.outgoing.done += count;
        }
        Ok(())
    }
}
