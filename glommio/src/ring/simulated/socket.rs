//! Operations on sockets: polls, accepts, connects.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};

use socket2::SockAddr;

use super::{Asked, InFlight, SimulatedRing, What};
use crate::ring::operation::Operation;
use crate::simulated::{NodeId, Wait};
use crate::sys::socket::simulated::{placeholder, simulated_address};
use simulated_kernel::network::SocketId;

impl SimulatedRing {
    pub(super) fn begin_socket(&self, asked: Asked, fd: RawFd) {
        let user_data = asked.user_data;
        let Some((node, socket)) = self.world.socket(fd) else {
            return self.complete(user_data, -libc::EBADF);
        };
        let wait = match asked.operation {
            Operation::Poll {
                events, is_multi, ..
            } => Wait {
                socket,
                // The events of poll(2) have sixteen bits.
                events: events as i16,
                is_multi,
                is_poll: true,
            },
            Operation::Connect {
                address, length, ..
            } => {
                let connected = self.connect((address, length), (node, socket));
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
            _ => Wait {
                socket,
                events: libc::POLLIN,
                is_multi: false,
                is_poll: false,
            },
        };
        let what = What::Socket;
        let mut in_flight = self.in_flight.borrow_mut();
        in_flight.insert(user_data, InFlight { asked, what });
        drop(in_flight);
        self.world.wait(self.id, user_data, wait);
    }

    /// Begins to connect. The result as the kernel gives it.
    fn connect(
        &self,
        (bytes, count): (*const libc::sockaddr, libc::socklen_t),
        (node, socket): (NodeId, SocketId),
    ) -> i32 {
        // SAFETY: `push` promises that the address stays where it is until the completion. No more is copied than there is room for.
        let address = unsafe {
            SockAddr::try_init(|storage, length| {
                *length = (*length).min(count);
                std::ptr::copy_nonoverlapping(
                    bytes.cast::<u8>(),
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
        match self.world.connect(node, socket, &address) {
            Ok(()) => 0,
            Err(number) => -number,
        }
    }

    /// The socket of an operation is as it waits for.
    pub(super) fn end_socket(&self, asked: Asked, fd: RawFd, result: Option<i32>, has_more: bool) {
        let user_data = asked.user_data;
        if let Some(events) = result {
            return self.post(user_data, events, has_more);
        }
        let Some((node, socket)) = self.world.socket(fd) else {
            return self.complete(user_data, -libc::EBADF);
        };
        if let Operation::Connect { .. } = asked.operation {
            let error = self
                .world
                .with_network(|network| network.take_error(socket));
            let result = match error {
                Ok(None) => 0,
                Ok(Some(number)) | Err(number) => -number,
            };
            return self.complete(user_data, result);
        }
        // First, as the kernel has it: without one the connection stays where it is.
        let listener = fd;
        let kind = self.world.with_network(|network| network.kind(socket));
        let fd = match kind {
            Ok(kind) => {
                (self.world.may_open(node)).and_then(|()| self.world.of_host(placeholder(kind)))
            }
            Err(number) => Err(io::Error::from_raw_os_error(number)),
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
            Err(libc::EAGAIN) => self.begin_socket(asked, listener),
            Err(number) => self.complete(user_data, -number),
        }
    }
}
