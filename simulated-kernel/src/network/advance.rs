//! Time passes: what is due happens, connections take steps, and their deadlines are kept.

use super::address::{Result, SocketId, Time};
use super::state::{Event, Network};
use super::tcp::{Connection, Output, State};

impl Network {
    /// Moves to `now` and delivers what is due by then, in order of time. An earlier time than the
    /// present one changes nothing.
    pub fn advance(&mut self, now: Time) {
        while let Some(first) = self.events.first_entry() {
            if first.key().0 > now {
                break;
            }
            let ((at, _), event) = first.remove_entry();
            self.now = self.now.max(at);
            self.happen(event);
            self.deliver_local();
        }
        self.now = self.now.max(now);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrival(packet) => {
                let node = &mut self.nodes[packet.to.0];
                if node.is_paused {
                    node.held.push(packet);
                } else {
                    self.arrive(packet);
                }
            }
            Event::Deadline(id) => self.expire(id),
        }
    }

    /// Runs a step of a connection and does what follows from it.
    pub(super) fn step<R>(
        &mut self,
        id: SocketId,
        step: impl FnOnce(&mut Connection, Time, &mut Output) -> R,
    ) -> Result<R> {
        let now = self.now;
        let mut output = Output::default();
        let socket = self.sockets.get_mut(&id).ok_or(libc::EBADF)?;
        let connection = socket.connection().ok_or(libc::EINVAL)?;
        let was_open = connection.state != State::Closed;
        let result = step(connection, now, &mut output);
        self.follow_up(id, output, was_open);
        Ok(result)
    }

    /// Sends the segments of a step, sets the timer, and removes a connection that is over and was
    /// not before.
    pub(super) fn follow_up(&mut self, id: SocketId, output: Output, was_open: bool) {
        for segment in output.segments {
            self.send_segment(id, segment);
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if output.wakes && !socket.is_closed {
            self.touch(id);
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        let Some(connection) = socket.connection() else {
            return;
        };
        let is_closed = connection.state == State::Closed;
        let is_orphan = connection.is_orphan;
        self.set_deadline(id);
        if is_closed && (was_open || is_orphan) {
            self.end_connection(id, is_orphan);
        }
    }

    /// Puts the deadline of a connection into the queue of events, in place of an earlier one.
    pub(super) fn set_deadline(&mut self, id: SocketId) {
        let now = self.now;
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        if self.nodes[socket.node.0].is_paused {
            // `resume` comes back to it.
            return;
        }
        let timer = socket.timer;
        let deadline = socket
            .connection()
            .and_then(|connection| connection.deadline())
            .map(|at| at.max(now));
        if timer.map(|(at, _)| at) == deadline {
            return;
        }
        if let Some(key) = timer {
            self.events.remove(&key);
        }
        let timer = deadline.map(|at| self.schedule(at, Event::Deadline(id)));
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.timer = timer;
        }
    }

    fn expire(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        socket.timer = None;
        if !self.nodes[socket.node.0].is_paused {
            // A socket without a connection has no deadline.
            let _ = self.step(id, |connection, now, output| connection.expire(now, output));
        }
    }
}
