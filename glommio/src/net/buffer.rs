//! Where a stream keeps bytes that are received and not yet read.

#![forbid(unsafe_code)]

/// The receive buffer of a stream.
///
/// It holds the bytes between the last refill and the reader: [`unfilled`](Self::unfilled) is where
/// a refill puts them, [`handle_result`](Self::handle_result) tells how many there are,
/// [`as_bytes`](Self::as_bytes) shows what is left of them.
pub trait RxBuf {
    /// The capacity in bytes. Zero for a stream that does not buffer.
    fn buffer_size(&self) -> usize;

    /// Whether nothing is left to read.
    fn is_empty(&self) -> bool;

    /// The unread bytes.
    fn as_bytes(&self) -> &[u8];

    /// Moves unread bytes to `buf`, as many as it holds; returns how many.
    fn read(&mut self, buf: &mut [u8]) -> usize;

    /// As [`read`](Self::read), but the bytes stay.
    fn peek(&self, buf: &mut [u8]) -> usize;

    /// Drops the first `amt` unread bytes, or all if there are fewer.
    fn consume(&mut self, amt: usize);

    /// The free space, which is the whole buffer if there is nothing left to read.
    fn unfilled(&mut self) -> &mut [u8];

    /// Takes note that `result` bytes were put at the beginning of [`unfilled`](Self::unfilled).
    fn handle_result(&mut self, result: usize);
}

/// The receive buffers that hold something. A stream with one implements
/// [`AsyncBufRead`](futures_io::AsyncBufRead).
pub trait Buffered: RxBuf {}

/// No buffer: reads go straight to the caller's memory.
#[derive(Debug, Default)]
pub struct NonBuffered;

impl RxBuf for NonBuffered {
    fn buffer_size(&self) -> usize {
        0
    }

    fn is_empty(&self) -> bool {
        true
    }

    fn unfilled(&mut self) -> &mut [u8] {
        &mut []
    }

    fn handle_result(&mut self, _result: usize) {}

    fn as_bytes(&self) -> &[u8] {
        &[]
    }

    fn peek(&self, _buf: &mut [u8]) -> usize {
        0
    }

    fn read(&mut self, _buf: &mut [u8]) -> usize {
        0
    }

    fn consume(&mut self, _amt: usize) {}
}

/// A buffer of fixed size, allocated once, and refilled when it is empty.
#[derive(Debug)]
pub struct Preallocated {
    bytes: Box<[u8]>,
    /// The unread bytes are `bytes[start..end]`.
    start: usize,
    end: usize,
}

impl Preallocated {
    /// A buffer of `size` bytes; of one byte if `size` is zero, since a buffer without space could
    /// not tell an idle connection from a closed one.
    ///
    /// # Examples
    ///
    /// ```
    /// # glommio::LocalExecutor::default().run(async {
    /// use futures_lite::AsyncBufReadExt;
    /// use glommio::net::{Preallocated, TcpListener, TcpStream};
    ///
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let client = TcpStream::connect(listener.local_addr()?).await?;
    /// let mut server = listener.accept().await?.buffered_with(Preallocated::new(16 << 10));
    /// # use futures_lite::AsyncWriteExt;
    /// # let mut client = client;
    /// client.write_all(b"a line\n").await?;
    /// let mut line = String::new();
    /// server.read_line(&mut line).await?;
    /// assert_eq!(line, "a line\n");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub fn new(size: usize) -> Self {
        Preallocated {
            bytes: vec![0; size.max(1)].into_boxed_slice(),
            start: 0,
            end: 0,
        }
    }
}

impl Default for Preallocated {
    /// A buffer of 8192 bytes.
    fn default() -> Self {
        Preallocated::new(8192)
    }
}

impl RxBuf for Preallocated {
    fn read(&mut self, buf: &mut [u8]) -> usize {
        let count = self.peek(buf);
        self.consume(count);
        count
    }

    fn peek(&self, buf: &mut [u8]) -> usize {
        let unread = self.as_bytes();
        let count = unread.len().min(buf.len());
        buf[..count].copy_from_slice(&unread[..count]);
        count
    }

    fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    fn consume(&mut self, amt: usize) {
        self.start += amt.min(self.end - self.start);
    }

    fn buffer_size(&self) -> usize {
        self.bytes.len()
    }

    fn handle_result(&mut self, result: usize) {
        assert!(
            result <= self.bytes.len() - self.end,
            "more bytes than there was space for"
        );
        self.end += result;
    }

    fn unfilled(&mut self) -> &mut [u8] {
        if self.is_empty() {
            self.start = 0;
            self.end = 0;
        }
        &mut self.bytes[self.end..]
    }
}

impl Buffered for Preallocated {}
