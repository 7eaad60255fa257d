//! Reads and writes of one length, several at a time, by a ring and nothing else.
//!
//! This file alone says what the kernel may touch: pieces of memory that is never given back, one for each operation that
//! may be in flight.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, squeue, types};
use workloads::files::Aligned;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Reads into memory that the ring knows.
    ReadRegistered,
    /// Writes.
    Write,
}

/// A ring, a file, and memory for `depth` operations.
pub struct Lanes {
    ring: IoUring,
    file: File,
    kind: Kind,
    /// One piece for each lane, for ever.
    pieces: Vec<*mut u8>,
    bytes: u32,
}

impl Lanes {
    /// # Errors
    /// If the kernel has no ring.
    pub fn new(file: File, kind: Kind, depth: usize, bytes: usize) -> io::Result<Self> {
        // As our reactor sets it up.
        let ring = IoUring::builder()
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(depth.next_power_of_two() as u32)?;
        let pieces = (0..depth).map(|_| {
            let Aligned { memory, start, .. } = Aligned::new(bytes);
            let memory: &'static mut [u8] = memory.leak();
            memory[start..start + bytes].as_mut_ptr()
        });
        let pieces: Vec<_> = pieces.collect();
        if kind == Kind::ReadRegistered {
            let known: Vec<_> = pieces
                .iter()
                .map(|&piece| libc::iovec {
                    iov_base: piece.cast(),
                    iov_len: bytes,
                })
                .collect();
            // SAFETY: the pieces were leaked, so that they stay mapped.
            unsafe { ring.submitter().register_buffers(&known) }?;
        }
        Ok(Self {
            ring,
            file,
            kind,
            pieces,
            bytes: u32::try_from(bytes).map_err(io::Error::other)?,
        })
    }

    /// Keeps every lane at work at the positions that `next` gives, until it gives none. Calls `done` after each.
    ///
    /// # Errors
    /// Of an operation that failed, or was cut short.
    pub fn run(
        &mut self,
        mut next: impl FnMut(usize) -> Option<u64>,
        mut done: impl FnMut(),
    ) -> io::Result<()> {
        let mut in_flight = 0;
        for lane in 0..self.pieces.len() {
            in_flight += usize::from(self.begin(lane, next(lane))?);
        }
        let mut ended = Vec::with_capacity(self.pieces.len());
        while in_flight > 0 {
            self.ring.submit_and_wait(1)?;
            ended.extend(
                self.ring
                    .completion()
                    .map(|it| (it.user_data(), it.result())),
            );
            for (lane, result) in ended.drain(..) {
                in_flight -= 1;
                if result != self.bytes.cast_signed() {
                    return Err(io::Error::other(format!("{:?} gave {result}", self.kind)));
                }
                done();
                let lane = lane as usize;
                in_flight += usize::from(self.begin(lane, next(lane))?);
            }
        }
        Ok(())
    }

    fn begin(&mut self, lane: usize, position: Option<u64>) -> io::Result<bool> {
        let Some(position) = position else {
            return Ok(false);
        };
        let (file, piece) = (types::Fd(self.file.as_raw_fd()), self.pieces[lane]);
        let entry: squeue::Entry = match self.kind {
            Kind::Read => opcode::Read::new(file, piece, self.bytes)
                .offset(position)
                .build(),
            Kind::ReadRegistered => {
                let index = u16::try_from(lane).map_err(io::Error::other)?;
                opcode::ReadFixed::new(file, piece, self.bytes, index)
                    .offset(position)
                    .build()
            }
            Kind::Write => opcode::Write::new(file, piece, self.bytes)
                .offset(position)
                .build(),
        };
        // SAFETY: `piece` was leaked, has `bytes` bytes, and nothing in this program reads or writes it; a lane has one
        // operation at a time. The file is open for as long as `self` is.
        unsafe { self.ring.submission().push(&entry.user_data(lane as u64)) }
            .map_err(io::Error::other)?;
        Ok(true)
    }
}
