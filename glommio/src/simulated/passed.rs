//! Descriptors that are on their way through Unix sockets.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use super::ids::NodeId;
use super::world::World;
use simulated_kernel::network::Passed;

impl World {
    /// Duplicates of `fds` are on their way from one process of a node to another.
    pub(crate) fn pass(&self, node: NodeId, fds: &[BorrowedFd<'_>]) -> io::Result<Passed> {
        let passed = Passed(self.next_number());
        self.passed.borrow_mut().insert(passed, (node, Vec::new()));
        for fd in fds {
            let duplicate = match self.of_host(fd.try_clone_to_owned()) {
                Ok(duplicate) => duplicate,
                Err(error) => {
                    self.lose_passed(passed);
                    return Err(error);
                }
            };
            let (of, number) = (fd.as_raw_fd(), duplicate.as_raw_fd());
            if let Some((node, file)) = self.file(of) {
                self.add_file(number, node, file);
            } else if let Some((node, socket)) = self.socket(of) {
                self.add_socket(number, node, socket);
            }
            if let Some((_, fds)) = self.passed.borrow_mut().get_mut(&passed) {
                fds.push(duplicate);
            }
        }
        Ok(passed)
    }

    /// They have arrived.
    pub(crate) fn take_passed(&self, passed: Passed) -> Vec<OwnedFd> {
        let taken = self.passed.borrow_mut().remove(&passed);
        taken.map_or_else(Vec::new, |(_, fds)| fds)
    }

    /// They will not arrive.
    pub(crate) fn lose_passed(&self, passed: Passed) {
        for fd in self.take_passed(passed) {
            self.forget(fd.as_raw_fd());
        }
    }
}
