//! The receiving end.

use std::hint::black_box;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};

use glommio::bare_socket;
use nix::libc;

use super::{CHUNK, Flow};
use crate::meter::Measured;
use crate::provided::ProvidedBuffers;
use crate::ring::Ring;

/// The ring says when something has come, and a system call receives it into the buffer of the
/// caller, until the kernel says that nothing is left.
pub fn polled(stream: TcpStream, mut flow: Flow) -> io::Result<Measured> {
    let mut ring = Ring::new()?;
    let fd = stream.as_raw_fd();
    bare_socket::set_reports_rest(stream.as_fd(), true)?;
    let mut buf = vec![0; CHUNK];
    let mut completions = Vec::new();
    let events = libc::POLLIN | libc::POLLRDHUP;
    ring.poll(fd, events, true, 0)?;
    loop {
        ring.turn(&mut completions)?;
        for completion in completions.drain(..) {
            completion.result()?;
            if !completion.has_more() {
                ring.poll(fd, events, true, 0)?;
            }
        }
        loop {
            match bare_socket::receive_all(fd, &mut buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                received => {
                    let (bytes, is_empty) = received?;
                    if bytes == 0 {
                        return flow.finish();
                    }
                    flow.received(&stream, bytes)?;
                    if is_empty {
                        break;
                    }
                }
            }
        }
    }
}

/// The ring receives, and the caller gets a copy in its own buffer.
pub fn provided_and_copied(stream: TcpStream, flow: Flow) -> io::Result<Measured> {
    let mut buf = vec![0; CHUNK];
    receive_provided(stream, flow, |bytes| {
        buf[..bytes.len()].copy_from_slice(bytes);
        black_box(&mut buf);
    })
}

/// The ring receives, and the caller looks at the buffers that it received into.
pub fn provided(stream: TcpStream, flow: Flow) -> io::Result<Measured> {
    receive_provided(stream, flow, |bytes| {
        black_box(bytes);
    })
}

fn receive_provided(
    stream: TcpStream,
    mut flow: Flow,
    mut hand_over: impl FnMut(&[u8]),
) -> io::Result<Measured> {
    const COUNT: u16 = 16;
    let mut ring = Ring::new()?;
    let mut buffers = ProvidedBuffers::new(&mut ring, COUNT, CHUNK)?;
    let mut completions = Vec::new();
    let fd = stream.as_raw_fd();
    buffers.receive(&mut ring, fd, 0)?;
    loop {
        ring.turn(&mut completions)?;
        for completion in completions.drain(..) {
            if !completion.lacks_buffers() {
                let bytes = completion.result()? as usize;
                if bytes == 0 {
                    return flow.finish();
                }
                let buffer = completion.buffer().expect("bytes lie in a buffer");
                // SAFETY: the completion at hand has named the buffer.
                hand_over(unsafe { buffers.bytes(buffer, bytes) });
                flow.received(&stream, bytes)?;
                buffers.give_back(buffer);
            }
            buffers.publish();
            if !completion.has_more() {
                buffers.receive(&mut ring, fd, 0)?;
            }
        }
    }
}
