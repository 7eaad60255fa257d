//! Operations on sockets: polls, accepts, connects.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

use io_uring::opcode;
use socket2::SockAddr;

use super::{InFlight, SimulatedRing, What};
use crate::ring::entry::Entry;
use crate::simulated::Wait;
use crate::simulated::network::{Errno, SocketId};
use crate::sys::socket::simulated::{placeholder, simulated_address};

/// `IORING_POLL_ADD_MULTI`
const MULTISHOT: u32 = 1;

impl SimulatedRing {
    pub(super) fn begin_socket(&self, entry: Entry) {
        let user_data = entry.user_data;
        let Some((_, socket)) = self.world.socket(entry.fd) else {
            return self.complete(user_data, -libc::EBADF);
        };
        let wait = match entry.opcode {
            opcode::PollAdd::CODE => Wait {
                socket,
                // The events of poll(2) have sixteen bits.
                events: entry.operation_flags as i16,
                is_multi: entry.length & MULTISHOT != 0,
                is_poll: true,
            },
            opcode::Accept::CODE => Wait {
                socket,
                events: libc::POLLIN,
                is_multi: false,
                is_poll: false,
            },
            _ => {
                let connected = self.connect(&entry, socket);
                if connected != -libc::EINPROGRESS {
                    return self.complete(user_data, connected);
                }
                Wait {
                    socket,
                    events: libc::POLLOUT,
                    is_multi: false,
                    is_poll: false,
                }
            }
        };
        let what = What::Socket;
        let mut in_flight = self.in_flight.borrow_mut();
        in_flight.insert(user_data, InFlight { entry, what });
        drop(in_flight);
        self.world.wait(self.id, user_data, wait);
    }

    /// Begins to connect. The result as the kernel gives it.
    fn connect(&self, entry: &Entry, socket: SocketId) -> i32 {
        // SAFETY: `push` promises that the address, whose length is the offset of the submission,
        // stays where it is until the completion. No more is copied than there is room for.
        let address = unsafe {
            SockAddr::try_init(|storage, length| {
                *length = (*length).min(entry.offset as libc::socklen_t);
                std::ptr::copy_nonoverlapping(
                    entry.address as *const u8,
                    storage.cast::<u8>(),
                    *length as usize,
                );
                Ok(())
            })
        };
        let address = address.and_then(|((), address)| simulated_address(&address));
        let Ok(address) = address else {
            return -libc::EAFNOSUPPORT;
        };
        let connected = self
            .world
            .with_network(|network| network.connect(socket, &address));
        match connected {
            Ok(()) => 0,
            Err(Errno(number)) => -number,
        }
    }

    /// The socket of an operation is as it waits for.
    pub(super) fn end_socket(&self, entry: &Entry, result: Option<i32>, has_more: bool) {
        let user_data = entry.user_data;
        if let Some(events) = result {
            return self.post(user_data, events, has_more);
        }
        let Some((node, socket)) = self.world.socket(entry.fd) else {
            return self.complete(user_data, -libc::EBADF);
        };
        if entry.opcode == opcode::Connect::CODE {
            let error = self
                .world
                .with_network(|network| network.take_error(socket));
            let result = match error {
                Ok(None) => 0,
                Ok(Some(Errno(number))) | Err(Errno(number)) => -number,
            };
            return self.complete(user_data, result);
        }
        // First, as the kernel has it: without one the connection stays where it is.
        let kind = self.world.with_network(|network| network.kind(socket));
        let fd = match kind {
            Ok(kind) => self.world.may_open(node).and_then(|()| placeholder(kind)),
            Err(Errno(number)) => Err(io::Error::from_raw_os_error(number)),
        };
        let fd = match fd {
            Ok(fd) => fd,
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(libc::EMFILE);
                return self.complete(user_data, -errno);
            }
        };
        let accepted = self.world.with_network(|network| network.accept(socket));
        match accepted {
            Ok((connection, _)) => {
                self.world.add_socket(fd.as_raw_fd(), node, connection);
                self.complete(user_data, fd.into_raw_fd());
            }
            // Another one was faster.
            Err(Errno(libc::EAGAIN)) => self.begin_socket(*entry),
            Err(Errno(number)) => self.complete(user_data, -number),
        }
    }
}
