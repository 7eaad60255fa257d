//! Many datagrams, received by one call.

#![forbid(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;

use super::UdpSocket;
use super::pool::{DatagramPool, ReceivedDatagrams};
use crate::net::Result;
use crate::reactor::budget;
use crate::stats::RunCounts;

/// Receiving in numbers.
impl UdpSocket {
    /// Receives what is there, at least one datagram and at most 32 buffers full, into free buffers
    /// of `pool`, and puts it behind what is in `received`. Returns how many were put there. All that
    /// is there is received by one call of `recvmmsg(2)`.
    ///
    /// Waits while nothing is there, for as long as the
    /// [read timeout](Self::set_read_timeout) allows, and while no buffer of the pool is free, for
    /// as long as it takes; [`DatagramPool::pauses`] counts the latter.
    ///
    /// Each datagram counts in the [budget](crate::consume_budget) of the task.
    ///
    /// # Errors
    ///
    /// Kind `InvalidInput` if the buffers are too short for the
    /// [GRO](Self::set_gro) that is turned on. Else as [`recv_from`](Self::recv_from).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when it is dropped: datagrams leave the socket only in the poll that puts
    /// them into `received` and ends it.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::net::{DatagramPool, Segments, UdpSocket};
    ///
    /// # glommio::LocalExecutor::default().run(async {
    /// let receiver = UdpSocket::bind("127.0.0.1:0")?;
    /// receiver.set_gro(true)?;
    /// let sender = UdpSocket::bind("127.0.0.1:0")?;
    /// let segments = Segments::new(&[7; 3000], 1200).to(receiver.local_addr()?);
    /// sender.send_segments(&segments).await?;
    ///
    /// let pool = DatagramPool::new(64, DatagramPool::MAX_BYTES);
    /// let mut received = Vec::new();
    /// let mut lengths = Vec::new();
    /// while lengths.len() < 3 {
    ///     receiver.recv_many(&pool, &mut received).await?;
    ///     for datagrams in received.drain(..) {
    ///         assert_eq!(datagrams.from(), sender.local_addr()?);
    ///         lengths.extend(datagrams.segments().map(|datagram| datagram.len()));
    ///     }
    /// }
    /// assert_eq!(lengths, [1200, 1200, 600]);
    /// assert!(receiver.try_recv_many(&pool, &mut received).is_err(), "nothing is left");
    /// # Ok::<_, glommio::GlommioError<()>>(())
    /// # }).unwrap();
    /// ```
    pub async fn recv_many(
        &self,
        pool: &DatagramPool,
        received: &mut Vec<ReceivedDatagrams>,
    ) -> Result<usize> {
        budget::checked(self.check_buffers(pool)).await?;
        let before = received.len();
        loop {
            if pool.available() == 0 {
                self.count(|counts| counts.datagram_pauses.add(1));
                pool.until_free().await;
            }
            let is_empty = self.is_empty.take();
            let receive = |fd| pool.receive(fd, received);
            let batch = if is_empty {
                self.datagram.read_when_ready(receive).await?
            } else {
                self.datagram.read(receive).await?
            };
            // Without, another socket took the last buffer while this one waited.
            if batch.count > 0 {
                self.is_empty.set(batch.is_last);
                let datagrams = datagrams(&received[before..]);
                // One of them was counted, or waited for.
                budget::spend_many(datagrams - 1);
                self.count(|counts| counts.datagrams_received(|| datagrams));
                return Ok(batch.count);
            }
        }
    }

    /// As [`recv_many`](Self::recv_many), without waiting.
    ///
    /// # Errors
    ///
    /// Kind `WouldBlock` if nothing is there, or no buffer is free. Else as
    /// [`recv_many`](Self::recv_many).
    pub fn try_recv_many(
        &self,
        pool: &DatagramPool,
        received: &mut Vec<ReceivedDatagrams>,
    ) -> Result<usize> {
        self.check_buffers(pool)?;
        let before = received.len();
        let count = pool.receive(self.socket().as_raw_fd(), received)?.count;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::WouldBlock).into());
        }
        self.count(|counts| counts.datagrams_received(|| datagrams(&received[before..])));
        Ok(count)
    }

    fn count(&self, event: impl FnOnce(&RunCounts)) {
        if let Some(reactor) = self.datagram.reactor().upgrade() {
            event(reactor.counts());
        }
    }

    /// What is received as one may be as long as an IP packet, and what does not fit is lost.
    fn check_buffers(&self, pool: &DatagramPool) -> io::Result<()> {
        if self.receives_coalesced.get() && pool.buffer_bytes() < DatagramPool::MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "buffers of {} bytes with GRO: it takes DatagramPool::MAX_BYTES, {}",
                    pool.buffer_bytes(),
                    DatagramPool::MAX_BYTES
                ),
            ));
        }
        Ok(())
    }
}

fn datagrams(received: &[ReceivedDatagrams]) -> usize {
    received.iter().map(|it| it.segments().len()).sum()
}
