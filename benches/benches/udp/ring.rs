//! Multishot `recvmsg` of io_uring, with a ring of provided buffers.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fd, RecvMsgOut};
use io_uring::{IoUring, cqueue, opcode};

use crate::bare::{Bare, segment_size};
use crate::way::{Received, Way};

const BUFFERS: u16 = 64;
/// With the header of the kernel, the name and the control messages in front of a datagram. All are aligned as control
/// messages have to be.
const BUFFER: usize = 65_536 + 16 + 128 + 256;
const GROUP: u16 = 1;
const AGAIN: u64 = 1;

pub struct Ring {
    ring: IoUring,
    /// Does what is not measured.
    bare: Bare<1, 1>,
    fd: Fd,
    header: Box<libc::msghdr>,
    entries: Box<Entries>,
    buffers: Vec<u8>,
    tail: u16,
}

/// The ring of buffers: page-aligned, as the kernel wants it.
#[repr(C, align(4096))]
struct Entries([u128; BUFFERS as usize]);

impl Ring {
    fn of(socket: UdpSocket) -> io::Result<Ring> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(8)?;
        // SAFETY: it consists of integers and of pointers that may be null.
        let mut header: Box<libc::msghdr> = Box::new(unsafe { std::mem::zeroed() });
        header.msg_namelen = 128;
        header.msg_controllen = 256;
        let mut this = Ring {
            ring,
            fd: Fd(socket.as_raw_fd()),
            bare: Bare::new(socket)?,
            header,
            entries: Box::new(Entries([0; BUFFERS as usize])),
            buffers: vec![0; BUFFER * BUFFERS as usize],
            tail: 0,
        };
        let entries = &raw mut *this.entries;
        // SAFETY: the memory of the ring lives as long as `this`, and the io_uring is dropped first.
        unsafe {
            this.ring.submitter().register_buf_ring_with_flags(
                entries as u64,
                BUFFERS,
                GROUP,
                0,
            )?;
        }
        for id in 0..BUFFERS {
            this.provide(id);
        }
        this.submit()?;
        Ok(this)
    }

    fn provide(&mut self, id: u16) {
        let entries = (&raw mut *self.entries).cast::<BufRingEntry>();
        let address = &raw mut self.buffers[usize::from(id) * BUFFER];
        // SAFETY: the index is within the ring, whose memory `self` owns; the kernel reads the entry
        // once the tail has passed it.
        unsafe {
            let entry = &mut *entries.add(usize::from(self.tail % BUFFERS));
            entry.set_addr(address as u64);
            entry.set_len(BUFFER as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: the tail is a field of the first entry, which both sides change as an atomic.
        let tail = unsafe { &*BufRingEntry::tail(entries).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    fn submit(&mut self) -> io::Result<()> {
        let receive = opcode::RecvMsgMulti::new(self.fd, &raw const *self.header, GROUP);
        let entry = receive.build().user_data(AGAIN);
        // SAFETY: the header and the buffers live as long as the ring.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)
    }

    fn receive_messages(&mut self) -> io::Result<Received> {
        self.ring.submit_and_wait(1)?;
        let mut received = Received::default();
        let completions: Vec<_> = self.ring.completion().collect();
        for completion in completions {
            if !cqueue::more(completion.flags()) {
                self.submit()?;
            }
            let Some(id) = cqueue::buffer_select(completion.flags()) else {
                if completion.result() != -libc::ENOBUFS {
                    return Err(io::Error::from_raw_os_error(-completion.result()));
                }
                continue;
            };
            let at = usize::from(id) * BUFFER;
            let whole = &self.buffers[at..at + completion.result() as usize];
            let message = RecvMsgOut::parse(whole, &self.header)
                .map_err(|()| io::Error::other("what was received is cut"))?;
            let length = message.payload_data().len();
            // SAFETY: it consists of integers and of pointers that may be null.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_control = message.control_data().as_ptr().cast_mut().cast();
            header.msg_controllen = message.control_data().len() as _;
            received.count(length, segment_size(&header).unwrap_or(length));
            self.provide(id);
        }
        Ok(received)
    }
}

impl Way for Ring {
    fn run<T>(work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        Bare::<1, 1>::run(work)
    }

    fn new(socket: UdpSocket) -> io::Result<Self> {
        Ring::of(socket)
    }

    async fn wait(&mut self) -> io::Result<()> {
        self.bare.wait().await
    }

    async fn receive(&mut self) -> io::Result<Received> {
        self.receive_messages()
    }

    async fn send(&mut self) -> io::Result<()> {
        self.bare.send().await
    }

    async fn answer(&mut self) -> io::Result<Received> {
        self.bare.answer().await
    }
}
