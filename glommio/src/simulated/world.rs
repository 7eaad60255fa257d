//! Time, chance, and what is due when.

mod nodes;

use std::cell::{Cell, Ref, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use fastrand::Rng;

use super::blocked::BlockingCalls;
use super::descriptors::{Descriptors, Of};
use super::generator::generator;
use super::ids::{End, NodeId, RingId, Time};
use super::moments::Moments;
use super::trace::{Event, Named, Trace};
use super::used_up::UsedUp;
use super::waits::{Wait, Waits};
use crate::clock;
use simulated_kernel::disk::{self, Disk, FileId};
use simulated_kernel::network::{self, Network, Passed, SocketId};

/// What clocks that tell the date say at the start: in the year 2020.
const EPOCH: Duration = Duration::from_secs(1_577_836_800);

/// Tells the generator of the network from that of all else.
const NETWORK: u64 = 0x6E65_7477_6F72_6B00;

/// How long calls that block take, in nanoseconds.
const BLOCKED: std::ops::Range<u64> = 1_000..200_000;

/// See [`simulated`](super).
pub(crate) struct World {
    /// What clocks show when the simulation starts.
    start: Instant,
    now: Cell<Time>,
    rng: RefCell<Rng>,
    trace: RefCell<Trace>,
    /// By time and by the order in which they were planned.
    planned: RefCell<BTreeMap<(Time, u64), Planned>>,
    blocking_calls: BlockingCalls,
    numbers: Cell<u64>,
    /// Operations that have ended.
    ended: Cell<u64>,
    rings: RefCell<Vec<Option<RingState>>>,
    nodes: RefCell<Vec<Node>>,
    descriptors: RefCell<Descriptors>,
    network: RefCell<Network>,
    waits: RefCell<Waits>,
    /// Descriptors on their way, each with its node.
    pub(super) passed: RefCell<BTreeMap<Passed, (NodeId, Vec<OwnedFd>)>>,
    /// The names in the network of Unix sockets, by their files.
    pub(super) unix_files: RefCell<BTreeMap<(NodeId, u64), Vec<u8>>>,
    used_up: UsedUp,
    /// How many descriptors a node may have.
    descriptors_max: Cell<usize>,
    /// Why the process cannot go on with the simulation.
    host_failure: RefCell<Option<String>>,
    /// The places in the code of users that were come by, and whether they are active.
    pub(super) buggified: RefCell<BTreeMap<(&'static str, u32, u32), bool>>,
    has_random_task_order: Cell<bool>,
    pub(super) is_calm: Cell<bool>,
    /// What is true sometimes, and how often it was.
    sometimes: RefCell<BTreeMap<&'static str, u64>>,
    moments: Moments,
    /// The node whose code runs now.
    here: Cell<Option<NodeId>>,
}

struct Node {
    name: String,
    disk: Disk,
    /// It has ended: nothing that it still does has an effect.
    ended: Option<End>,
    /// How often it has started.
    starts: u64,
    /// How many executors it has made since it started.
    executors: usize,
}

#[derive(Default)]
struct RingState {
    node: Option<NodeId>,
    due: VecDeque<Due>,
}

/// An operation whose end has come, or one of several ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) user_data: u64,
    /// Otherwise the ring has to find out.
    pub(crate) result: Option<i32>,
    pub(crate) has_more: bool,
}

enum Planned {
    /// The end of an operation of a ring.
    Operation(RingId, u64),
    /// A call that blocks.
    Call(NodeId, Box<dyn FnOnce()>),
}

/// The name under which something is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PlannedAt(Time, u64);

impl World {
    pub(crate) fn new(seed: u64, start: Instant) -> Rc<World> {
        Rc::new(World {
            start,
            now: Cell::default(),
            rng: RefCell::new(generator(seed, 0)),
            trace: RefCell::new(Trace::new(seed)),
            planned: RefCell::default(),
            blocking_calls: BlockingCalls::new(seed),
            numbers: Cell::default(),
            ended: Cell::default(),
            rings: RefCell::default(),
            nodes: RefCell::default(),
            descriptors: RefCell::default(),
            network: RefCell::new(Network::new(generator(seed, NETWORK).u64(..))),
            waits: RefCell::default(),
            passed: RefCell::default(),
            unix_files: RefCell::default(),
            used_up: UsedUp::default(),
            descriptors_max: Cell::new(usize::MAX),
            host_failure: RefCell::default(),
            buggified: RefCell::default(),
            has_random_task_order: Cell::default(),
            is_calm: Cell::default(),
            sometimes: RefCell::default(),
            moments: Moments::default(),
            here: Cell::default(),
        })
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    pub(crate) fn now(&self) -> Time {
        self.now.get()
    }

    /// The date by the clock of the node whose code runs.
    pub(crate) fn date(&self) -> SystemTime {
        clock::date_of(clock::now(), (self.start, SystemTime::UNIX_EPOCH + EPOCH))
    }

    /// Draws from the one generator.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.rng.borrow_mut())
    }

    /// See [`SimulationBuilder::random_task_order`](crate::simulation::SimulationBuilder::random_task_order).
    pub(crate) fn set_random_task_order(&self, is_random: bool) {
        self.has_random_task_order.set(is_random);
    }

    pub(crate) fn has_random_task_order(&self) -> bool {
        self.has_random_task_order.get()
    }

    /// Sets whose code runs from now on. Who it was before.
    pub(crate) fn set_here(&self, node: Option<NodeId>) -> Option<NodeId> {
        self.here.replace(node)
    }

    pub(crate) fn here(&self) -> Option<NodeId> {
        self.here.get()
    }

    /// What nodes have none left of.
    pub(crate) fn used_up(&self) -> &UsedUp {
        &self.used_up
    }

    /// Nothing goes wrong any more.
    pub(crate) fn calm_down(&self) {
        self.used_up.clear();
        self.is_calm.set(true);
    }

    /// See [`sometimes!`](crate::sometimes).
    pub(crate) fn count_sometimes(&self, name: &'static str, is_true: bool) {
        let mut sometimes = self.sometimes.borrow_mut();
        *sometimes.entry(name).or_default() += u64::from(is_true);
    }

    /// How often each that was reached was true.
    pub(crate) fn sometimes(&self) -> BTreeMap<&'static str, u64> {
        self.sometimes.borrow().clone()
    }

    /// What nodes do that faults seek.
    pub(crate) fn moments(&self) -> &Moments {
        &self.moments
    }

    /// Whether a descriptor of a node is free.
    ///
    /// # Errors
    ///
    /// `EMFILE` if not.
    pub(crate) fn may_open(&self, node: NodeId) -> io::Result<()> {
        let are_used_up = self.used_up.descriptors.of(node, self.now()).is_some();
        let count = self.descriptors.borrow().count(node);
        match are_used_up || count >= self.descriptors_max.get() {
            true => Err(io::Error::from_raw_os_error(libc::EMFILE)),
            false => Ok(()),
        }
    }

    /// How many descriptors each node may have.
    pub(crate) fn set_descriptors_max(&self, max: usize) {
        self.descriptors_max.set(max);
    }

    /// The number of a descriptor as its node sees it.
    pub(crate) fn number_of(&self, fd: RawFd) -> RawFd {
        self.descriptors.borrow().number(fd).unwrap_or(fd)
    }

    /// A descriptor of the process, which is to stand for one of a node. If there is none, the simulation is over:
    /// what it would do is not up to the seed.
    pub(crate) fn of_host<T>(&self, made: io::Result<T>) -> io::Result<T> {
        made.inspect_err(|error| {
            let text = format!("the process has no descriptor left ({error}): raise `ulimit -n`");
            self.host_failure.borrow_mut().get_or_insert(text);
        })
    }

    /// Why the process cannot go on with the simulation, if it cannot.
    pub(crate) fn take_host_failure(&self) -> Option<String> {
        self.host_failure.take()
    }

    /// Until when there is no memory for rings of a node, if there is none now.
    pub(crate) fn no_memory_until(&self, node: NodeId) -> Option<Time> {
        self.used_up.memory.of(node, self.now())
    }

    /// Calls `call` with the disk of a node.
    ///
    /// # Errors
    ///
    /// That of `call`; `EIO` of a node without power.
    pub(crate) fn with_disk<T>(
        &self,
        node: NodeId,
        call: impl FnOnce(&mut Disk) -> disk::Result<T>,
    ) -> disk::Result<T> {
        let mut nodes = self.nodes.borrow_mut();
        let node = &mut nodes[node.0];
        if node.ended.is_some() {
            return Err(libc::EIO);
        }
        node.disk.set_now(EPOCH + self.now());
        call(&mut node.disk)
    }

    /// What a descriptor is of.
    pub(crate) fn named(&self, fd: RawFd) -> Named {
        if let Some(file) = self.file(fd) {
            let path = self.descriptors.borrow().path(file);
            return path.map_or(Named::Nothing, Named::Path);
        }
        let Some((_, socket)) = self.socket(fd) else {
            return Named::Nothing;
        };
        let network = self.network.borrow();
        let internet = |address: network::Result<network::Address>| match address {
            Ok(network::Address::Ip(address)) => Some(address),
            _ => None,
        };
        let local = internet(network.local_addr(socket));
        Named::Socket(local, internet(network.peer_addr(socket)))
    }

    /// Which file of which node a descriptor is of.
    pub(crate) fn file(&self, fd: RawFd) -> Option<(NodeId, FileId)> {
        match self.descriptors.borrow().get(fd)? {
            (node, Of::File(file)) => Some((node, file)),
            _ => None,
        }
    }

    /// A descriptor of `file`, which was opened just now and is closed if there is none.
    /// `path` is what it was opened by.
    pub(crate) fn open_descriptor(
        &self,
        node: NodeId,
        file: FileId,
        path: &[u8],
    ) -> io::Result<OwnedFd> {
        let opened = (self.may_open(node)).and_then(|()| self.of_host(File::open("/dev/null")));
        let opened = opened.inspect_err(|_| {
            let _ = self.with_disk(node, |disk| disk.close(file));
        })?;
        self.add_file(opened.as_raw_fd(), node, file);
        self.descriptors.borrow_mut().set_path((node, file), path);
        Ok(opened.into())
    }

    /// `fd` is a descriptor of `file`.
    pub(crate) fn add_file(&self, fd: RawFd, node: NodeId, file: FileId) {
        self.add(fd, node, Of::File(file));
    }

    fn add(&self, fd: RawFd, node: NodeId, of: Of) {
        // One of that number was closed, and this was not told.
        self.forget(fd);
        self.descriptors.borrow_mut().add(fd, node, of);
    }

    /// Calls `call` with the network, and has those who wait for sockets be told what follows.
    pub(crate) fn with_network<T>(&self, call: impl FnOnce(&mut Network) -> T) -> T {
        let mut network = self.network.borrow_mut();
        let called = call(&mut network);
        let mut told = self.waits.borrow_mut().told(&mut network);
        let (lost, packets) = (network.take_lost_passed(), network.take_log());
        drop(network);
        for packet in packets {
            let mut trace = self.trace.borrow_mut();
            trace.add(packet.at, None, Event::Packet(packet));
        }
        for passed in lost {
            self.lose_passed(passed);
        }
        if told.len() > 1 {
            self.draw(|rng| rng.shuffle(&mut told));
        }
        for it in told {
            let result = it.events.map(i32::from);
            self.end(it.ring, it.user_data, result, !it.is_over);
        }
        called
    }

    pub(super) fn network(&self) -> Ref<'_, Network> {
        self.network.borrow()
    }

    /// Which socket of which node a descriptor is of.
    pub(crate) fn socket(&self, fd: RawFd) -> Option<(NodeId, SocketId)> {
        match self.descriptors.borrow().get(fd)? {
            (node, Of::Socket(socket)) => Some((node, socket)),
            _ => None,
        }
    }

    /// `fd` is a descriptor of `socket`.
    pub(crate) fn add_socket(&self, fd: RawFd, node: NodeId, socket: SocketId) {
        self.add(fd, node, Of::Socket(socket));
    }

    /// An operation waits for a socket; looked at now, and whenever that has changed.
    pub(crate) fn wait(&self, ring: RingId, user_data: u64, wait: Wait) {
        self.waits.borrow_mut().wait(ring, user_data, wait);
        self.with_network(|network| network.look_again(wait.socket));
    }

    /// Whether the operation was waiting, which it does no more.
    pub(crate) fn end_wait(&self, ring: RingId, user_data: u64) -> bool {
        self.waits.borrow_mut().end_wait(ring, user_data)
    }

    /// `fd` is closed.
    pub(crate) fn forget(&self, fd: RawFd) {
        let last = self.descriptors.borrow_mut().forget(fd);
        // What went with the power is closed already.
        let _ = match last {
            Some((_, Of::Socket(socket))) => self.with_network(|network| network.close(socket)),
            Some((node, Of::File(file))) => self.with_disk(node, |disk| disk.close(file)),
            None => Ok(()),
        };
    }

    pub(crate) fn note(&self, event: Event) {
        let nodes = self.nodes.borrow();
        let name = self.here.get().map(|it| nodes[it.0].name.as_str());
        self.trace.borrow_mut().add(self.now(), name, event);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.trace.borrow().digest()
    }

    pub(crate) fn events(&self) -> u64 {
        self.trace.borrow().events()
    }

    pub(crate) fn latest_events(&self) -> Vec<String> {
        let nodes = self.nodes.borrow();
        let trace = self.trace.borrow();
        trace.latest(|node: NodeId| &*nodes[node.0].name)
    }

    pub(crate) fn add_ring(&self) -> RingId {
        let mut rings = self.rings.borrow_mut();
        rings.push(Some(RingState {
            node: self.here.get(),
            ..RingState::default()
        }));
        RingId(rings.len() - 1)
    }

    pub(crate) fn remove_ring(&self, ring: RingId) {
        self.rings.borrow_mut()[ring.0] = None;
        let of_ring = |it: &Planned| matches!(it, Planned::Operation(of, _) if *of == ring);
        let mut planned = self.planned.borrow_mut();
        planned.retain(|_, it| !of_ring(it));
    }

    /// The node of a ring.
    pub(crate) fn node_of(&self, ring: RingId) -> Option<NodeId> {
        self.rings.borrow()[ring.0].as_ref()?.node
    }

    /// Whether that is without power.
    pub(crate) fn ring_is_off(&self, ring: RingId) -> bool {
        self.node_of(ring).is_some_and(|node| self.is_off(node))
    }

    /// Whether operations of a ring have come to their ends.
    pub(crate) fn has_due(&self, ring: RingId) -> bool {
        let rings = self.rings.borrow();
        rings[ring.0].as_ref().is_some_and(|it| !it.due.is_empty())
    }

    /// The next of these.
    pub(crate) fn next_due(&self, ring: RingId) -> Option<Due> {
        let mut rings = self.rings.borrow_mut();
        rings[ring.0].as_mut()?.due.pop_front()
    }

    /// Plans the end of an operation.
    pub(crate) fn plan_operation(&self, ring: RingId, user_data: u64, after: Time) -> PlannedAt {
        self.plan(after, Planned::Operation(ring, user_data))
    }

    /// Has a call that blocks be made by a thread of the node whose code runs: some time later, all at
    /// once. `name` is that of its function.
    pub(crate) fn block(&self, name: &str, call: Box<dyn FnOnce()>) {
        let node = self.here.get().expect("code of a node runs");
        if self.is_off(node) {
            return drop(call);
        }
        let after = self.draw(|rng| Duration::from_nanos(rng.u64(BLOCKED)));
        let name = format!("{name} on {}", self.nodes.borrow()[node.0].name);
        let call = self.blocking_calls.add(name, call);
        self.plan(after, Planned::Call(node, call));
    }

    /// Has a call wait until `at`: its node stands still.
    pub(crate) fn postpone(&self, node: NodeId, at: Time, call: Box<dyn FnOnce()>) {
        self.plan(at - self.now(), Planned::Call(node, call));
    }

    /// One that it has not returned before.
    pub(super) fn next_number(&self) -> u64 {
        let number = self.numbers.get();
        self.numbers.set(number + 1);
        number
    }

    fn plan(&self, after: Time, what: Planned) -> PlannedAt {
        let number = self.next_number();
        let at = self.now() + after;
        self.planned.borrow_mut().insert((at, number), what);
        PlannedAt(at, number)
    }

    /// Whether it was planned still.
    pub(crate) fn forget_plan(&self, at: PlannedAt) -> bool {
        self.planned.borrow_mut().remove(&(at.0, at.1)).is_some()
    }

    /// How many operations have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.get()
    }

    /// When something happens next that is not of an executor.
    pub(crate) fn next_event(&self) -> Option<Time> {
        let planned = self.planned.borrow();
        let planned = planned.first_key_value().map(|((at, _), _)| *at);
        let network = self.network.borrow().next_event();
        planned.into_iter().chain(network).min()
    }

    /// It is `now`. What is due until then happens; calls are returned, each with its node, to be made
    /// with nothing borrowed. Of what is due at the same time, chance says what comes first.
    pub(crate) fn move_to(&self, now: Time) -> Vec<(NodeId, Box<dyn FnOnce()>)> {
        debug_assert!(now >= self.now(), "time does not go back");
        self.now.set(now);
        self.note(Event::Moved);
        let is_network_first = self.draw(fastrand::Rng::bool);
        if is_network_first {
            self.with_network(|network| network.advance(now));
        }
        let mut due = Vec::new();
        {
            let mut planned = self.planned.borrow_mut();
            while let Some(entry) = planned.first_entry() {
                if entry.key().0 > now {
                    break;
                }
                due.push(entry.remove());
            }
        }
        self.draw(|rng| rng.shuffle(&mut due));
        let mut calls = Vec::new();
        for it in due {
            match it {
                Planned::Operation(ring, user_data) => self.end(ring, user_data, None, false),
                Planned::Call(node, call) => calls.push((node, call)),
            }
        }
        if !is_network_first {
            self.with_network(|network| network.advance(now));
        }
        calls
    }

    /// The end of an operation has come, or an event of one that `has_more`; with `result`, or one that the
    /// ring finds out.
    fn end(&self, ring: RingId, user_data: u64, result: Option<i32>, has_more: bool) {
        self.ended.update(|it| it + 1);
        if let Some(state) = &mut self.rings.borrow_mut()[ring.0] {
            let due = Due {
                user_data,
                result,
                has_more,
            };
            // Events of the same kind that were not looked at yet are one.
            if !state.due.contains(&due) {
                state.due.push_back(due);
            }
        }
    }
}
