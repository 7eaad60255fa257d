//! The tasks of an endpoint.
//!
//! ```text
//!            receiver                               driver
//!   socket ───────────▶ protocol ─▶ connection ───────────────▶ socket
//!                                     │     ▲  ready queue
//!                       wakes tasks   ▼     │
//!                                  handles of the user
//! ```
//!
//! The receiver takes datagrams by the batch and gives them to the connections. It wakes the tasks
//! that wait for them first and the driver last, so that what they have to say leaves with the
//! acknowledgements. The driver sends what there is, sees to the timers, and takes turns between
//! the connections.

use super::Shared;
use crate::connection::State;
use crate::shards::Membership;
use crate::socket::{Datagram, Outgoing, Socket, datagrams};
use glommio::time::now;
use glommio::{Task, executor, spawn_local};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// How many datagrams a connection may send before the next one is looked at.
const TURN: usize = 90;
/// After so many connections what they have is sent, and other tasks run if they are to.
const CONNECTIONS: usize = 64;
/// After so many connections, or datagrams received, it is asked whether other tasks are to run: the first datagram of
/// a client takes about ten microseconds, and the one that ends a handshake more.
const AT_ONCE: usize = 8;
/// Timers that fire before the connections among them are looked at.
const TIMERS: usize = 256;
/// A socket that keeps failing to receive is not asked all the time.
const PAUSE: Duration = Duration::from_millis(10);

/// The tasks that the driver ends.
#[derive(Default)]
pub(super) struct Receivers {
    /// From the current socket.
    socket: RefCell<Option<Task<()>>>,
    /// What other shards pass on.
    inbox: RefCell<Option<Task<()>>>,
}

impl Receivers {
    /// Starts the task that receives from `socket`, in place of one that there may be.
    pub(super) fn start(&self, shared: &Rc<Shared>, socket: Rc<Socket>) {
        let task = spawn_local(receive(Rc::clone(shared), socket));
        let replaced = self.socket.borrow_mut().replace(task);
        drop(replaced);
    }

    /// Starts the task that takes what other shards pass on.
    pub(super) fn start_inbox(&self, shared: &Rc<Shared>, shard: Arc<Membership>) {
        let task = spawn_local(take_over(Rc::clone(shared), shard));
        *self.inbox.borrow_mut() = Some(task);
    }

    fn end(&self) {
        let tasks = (self.socket.take(), self.inbox.take());
        drop(tasks);
    }
}

async fn receive(shared: Rc<Shared>, socket: Rc<Socket>) {
    let mut batch = Vec::new();
    let mut touched: Vec<Rc<State>> = Vec::new();
    loop {
        if let Err(error) = socket.receive(&mut batch).await {
            if !is_about_a_peer(&error) {
                tracing::warn!(%error, "cannot receive");
                glommio::timer::sleep(PAUSE).await;
            }
            continue;
        }
        let all = batch.drain(..).flat_map(datagrams);
        handle(&shared, all, Shared::receive, &mut touched).await;
    }
}

async fn take_over(shared: Rc<Shared>, shard: Arc<Membership>) {
    let mut touched: Vec<Rc<State>> = Vec::new();
    loop {
        let all = shard.receive().await;
        handle(&shared, all, Shared::take_over, &mut touched).await;
        glommio::yield_if_needed().await;
    }
}

/// Has the protocol `take` all `datagrams`. `touched` is empty before and after.
async fn handle(
    shared: &Shared,
    datagrams: impl Iterator<Item = Datagram>,
    take: fn(&Shared, Instant, Datagram, &mut Vec<Rc<State>>),
    touched: &mut Vec<Rc<State>>,
) {
    let mut received_at = now();
    for (count, datagram) in datagrams.enumerate() {
        if count > 0 && count % AT_ONCE == 0 && executor().need_preempt() {
            deliver(shared, touched);
            executor().yield_now().await;
            received_at = now();
        }
        take(shared, received_at, datagram, touched);
    }
    deliver(shared, touched);
}

fn deliver(shared: &Shared, touched: &mut Vec<Rc<State>>) {
    for state in touched.drain(..) {
        state.deliver_events();
        shared.schedule(&state);
    }
}

/// Errors that an earlier datagram has caused, and that say nothing of the socket.
fn is_about_a_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, HostUnreachable, NetworkUnreachable};
    matches!(
        error.kind(),
        ConnectionRefused | ConnectionReset | HostUnreachable | NetworkUnreachable
    )
}

/// Sends and keeps time, until there is neither a connection nor an endpoint.
pub(super) async fn drive(shared: Rc<Shared>, receivers: Rc<Receivers>) {
    let _ends = Ends {
        shared: Rc::clone(&shared),
        receivers,
    };
    let mut outgoing = Outgoing::default();
    while !shared.is_finished() {
        poll_fn(|cx| poll_work(&shared, cx)).await;
        let Some(socket) = shared.socket() else { break };
        for _ in 0..AT_ONCE {
            if !shared.refuse_late() {
                break;
            }
        }
        while let Some((transmit, response)) = shared.next_response() {
            *outgoing.next() = response;
            outgoing.add(transmit, &socket);
        }
        for count in 1..=CONNECTIONS {
            let Some(state) = shared.next_ready() else {
                break;
            };
            drive_connection(&shared, &socket, &state, &mut outgoing).await;
            if count % AT_ONCE == 0 && executor().need_preempt() {
                break;
            }
        }
        let failed = socket.send(&mut outgoing).await;
        shared.count(|stats| stats.sends_failed += failed);
        glommio::yield_if_needed().await;
    }
}

/// Whatever ends the driver, the rest does not wait for it.
struct Ends {
    shared: Rc<Shared>,
    receivers: Rc<Receivers>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.receivers.end();
        self.shared.abandon();
    }
}

/// Lets timers fire, and is ready if a connection is, or the end has come.
fn poll_work(shared: &Rc<Shared>, cx: &mut Context<'_>) -> Poll<()> {
    shared.set_driver(cx.waker());
    let mut fired = 0;
    while fired < TIMERS
        && let Poll::Ready(expired) = shared.timers.poll_expired(cx)
    {
        fired += 1;
        if let Some(state) = shared.connection(expired.into_inner()) {
            state.timer.take();
            if state.handshake_ends().is_some_and(|ends| ends <= now()) {
                shared.count(|stats| stats.handshakes_timed_out += 1);
                state.time_out();
            }
            let handled = shared.with_proto(&state, |proto| proto.handle_timeout(now()));
            if handled.is_some() {
                shared.schedule(&state);
            }
        }
    }
    if fired == TIMERS {
        // The queue of timers has not been told whom to wake for the next one.
        cx.waker().wake_by_ref();
    }
    match shared.has_work() || shared.is_finished() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }
}

async fn drive_connection(
    shared: &Rc<Shared>,
    socket: &Socket,
    state: &Rc<State>,
    outgoing: &mut Outgoing,
) {
    if !shared.has(state) {
        // Drained or broken off, and scheduled by a handle. Its number may be another's by now.
        return;
    }
    let mut sent = 0;
    while sent < TURN {
        let transmit = shared.with_proto(state, |proto| {
            let most = socket.max_segments(proto.current_mtu());
            proto.poll_transmit(now(), most, outgoing.next())
        });
        let Some(transmit) = transmit else { return };
        let Some(transmit) = transmit else { break };
        sent += match transmit.segment_size {
            Some(size) => transmit.size.div_ceil(size),
            None => 1,
        };
        outgoing.add(transmit, socket);
        if outgoing.is_full() {
            let failed = socket.send(outgoing).await;
            shared.count(|stats| stats.sends_failed += failed);
        }
    }
    if sent >= TURN {
        // There may be more, after what the others have.
        shared.schedule(state);
    }

    if shared.exchange(state) {
        arm(shared, state);
    }
    state.deliver_events();
}

/// Moves the timer of a connection to where the protocol wants it.
fn arm(shared: &Shared, state: &State) {
    let of_protocol = state.proto.borrow_mut().poll_timeout();
    let deadline = of_protocol.into_iter().chain(state.handshake_ends()).min();
    let deadline = deadline.map(|deadline| shared.ticks.next(now(), deadline));
    let armed = state.timer.get();
    let timer = match (deadline, armed) {
        (Some(deadline), Some((_, at))) if deadline == at => armed,
        (Some(deadline), Some((key, _))) if shared.timers.reset_at(key, deadline) => {
            Some((key, deadline))
        }
        (Some(deadline), _) => {
            let key = shared.timers.insert_at(state.handle, deadline);
            Some((key, deadline))
        }
        (None, Some((key, _))) => {
            shared.timers.remove(key);
            None
        }
        (None, None) => None,
    };
    state.timer.set(timer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto;
    use crate::waiters::tests::Counting;
    use glommio::LocalExecutor;
    use glommio::net::UdpSocket;
    use quinn_proto::ConnectionHandle;
    use std::cell::Cell;
    use std::error::Error;
    use std::net::Ipv4Addr;
    use std::sync::atomic::Ordering;
    use std::task::Waker;

    /// More timers than are looked at in one go, of connections that are gone: there is nothing to
    /// do for any of them, and yet the driver has to come back for the rest.
    #[test]
    fn timers_of_connections_that_are_gone_do_not_keep_the_driver_asleep()
    -> Result<(), Box<dyn Error>> {
        LocalExecutor::default().run(async {
            let socket = Socket::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.into())?;
            let shared = Shared::new(crypto::endpoint_config()?, None, Rc::new(socket), None);
            for number in 0..=TIMERS {
                let due = Instant::now();
                shared.timers.insert_at(ConnectionHandle(number), due);
            }
            let counting = Arc::new(Counting::default());
            let waker = Waker::from(Arc::clone(&counting));
            let mut cx = Context::from_waker(&waker);
            let mut polls = 0;
            while !shared.timers.is_empty() {
                polls += 1;
                assert!(poll_work(&shared, &mut cx).is_pending());
                assert!(
                    counting.0.swap(0, Ordering::Relaxed) > 0 || shared.timers.is_empty(),
                    "{} timers are left after poll {polls}",
                    shared.timers.len()
                );
                // So that the budget of this task is not what ends a poll.
                glommio::yield_if_needed().await;
            }
            assert!(polls > 1);
            Ok(())
        })
    }

    /// As with first packets of clients that there are none of, each of which takes its time.
    #[test]
    fn a_flood_leaves_turns_to_other_tasks() -> Result<(), Box<dyn Error>> {
        LocalExecutor::default().run(async {
            let socket = Socket::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.into())?;
            let shared = Shared::new(crypto::endpoint_config()?, None, Rc::new(socket), None);
            let turns = Rc::new(Cell::new(0));
            let counts = Rc::clone(&turns);
            spawn_local(async move {
                loop {
                    counts.set(counts.get() + 1);
                    executor().yield_now().await;
                }
            })
            .detach();
            let slow = |_| {
                while !executor().need_preempt() {
                    std::hint::spin_loop();
                }
                Datagram {
                    remote: (Ipv4Addr::LOCALHOST, 1).into(),
                    local_ip: None,
                    ecn: None,
                    payload: bytes::BytesMut::zeroed(1200),
                }
            };
            let mut touched = Vec::new();
            let flood = (0..10 * AT_ONCE).map(slow);
            handle(&shared, flood, Shared::receive, &mut touched).await;
            assert_eq!(shared.stats.get().received, 10 * AT_ONCE as u64);
            assert!(turns.get() >= 9, "{} turns", turns.get());
            Ok(())
        })
    }
}
