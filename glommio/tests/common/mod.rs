//! What the test programs share: a watchdog, helpers for executors and tasks, and looks into `/proc`.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test program compiles this file and uses a part of it"
)]

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use glommio::net::TcpListener;
use glommio::{
    CpuSet, ExecutorJoinHandle, Latency, LocalExecutor, LocalExecutorBuilder, Shares, Task,
    TaskQueueHandle, executor, spawn_local_into,
};

pub mod child;
pub mod hooks;
pub mod log;
pub mod loud_clone;
pub mod polled;
pub mod prelude;
pub mod rationed;
pub mod seccomp;
pub mod skipped;

pub use child::*;

/// So much longer on a machine that is `GLOMMIO_TEST_PATIENCE` times as slow as most, such as an emulated one.
pub fn patient(time: Duration) -> Duration {
    let factor = std::env::var("GLOMMIO_TEST_PATIENCE");
    time * factor.map_or(1, |it| it.parse().expect("a factor"))
}

/// Ends the process if it lives too long: a test that hangs says which one it is.
#[must_use]
pub struct Watchdog(#[expect(dead_code, reason = "its drop is the message")] Sender<()>);

/// Starts a watchdog for the current test.
pub fn watchdog() -> Watchdog {
    let patience = patient(Duration::from_secs(300));
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let (alive, death) = channel();
    thread::Builder::new()
        .name("watchdog".into())
        .spawn(move || {
            if death.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                // Not `eprintln`, which the test harness keeps to itself until the test ends.
                let _ = writeln!(std::io::stderr(), "{test}: hangs, aborting");
                std::process::abort();
            }
        })
        .expect("the system has a thread for the watchdog");
    Watchdog(alive)
}

/// Runs `test`, and ends it if it does not come to an end.
pub fn with_watchdog<T>(test: impl FnOnce() -> T) -> T {
    let _watchdog = watchdog();
    test()
}

/// Runs `future` on a new executor, with a watchdog.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    with_watchdog(|| LocalExecutor::default().run(future))
}

/// An executor on a thread of its own, which runs what `make` makes there.
pub fn spawn_executor<F, T>(make: impl FnOnce() -> F + Send + 'static) -> ExecutorJoinHandle<T>
where
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let executor = LocalExecutorBuilder::default().spawn(make);
    executor.expect("the system has a thread for it")
}

/// A task queue of the running executor, like the default one.
pub fn queue(name: &str) -> TaskQueueHandle {
    executor().create_task_queue(Shares::default(), Latency::NotImportant, name)
}

/// A task in a queue that exists.
#[track_caller]
pub fn spawn_in<T: 'static>(
    queue: TaskQueueHandle,
    future: impl Future<Output = T> + 'static,
) -> Task<T> {
    spawn_local_into(future, queue).expect("the queue exists")
}

/// Awaits all, one after the other.
pub async fn join_all<T>(all: impl IntoIterator<Item = impl Future<Output = T>>) {
    for one in all {
        drop(one.await);
    }
}

/// Keeps the thread for that time.
pub fn compute(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Keeps the thread until the running task should give it back.
pub fn spin_until_preempted() {
    while !executor().need_preempt() {
        std::hint::spin_loop();
    }
}

/// A listener on the loopback device, and its address.
pub fn bound() -> glommio::Result<(TcpListener, SocketAddr), ()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// As [`run`], in a process of its own.
pub fn run_in_child(test: impl AsyncFnOnce()) {
    in_child(|| run(test()));
}

/// An executor whose slices have this length.
pub fn with_slices_of(slice: Duration) -> LocalExecutor {
    LocalExecutorBuilder::default()
        .preempt_timer(slice)
        .make()
        .expect("an executor can be made")
}

/// The message of the panic in which `f` must end.
pub fn panic_of<R>(f: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f))
        .err()
        .expect("this was to panic");
    match payload.downcast::<String>() {
        Ok(message) => *message,
        Err(payload) => (*payload.downcast::<&str>().expect("a panic with a message")).to_owned(),
    }
}

/// As many descriptors are open after `test` as before, in a process that does nothing else.
pub fn leaves_no_descriptor(test: impl Fn()) {
    in_child(|| {
        // What is opened once for the whole process.
        test();
        let before = descriptors();
        test();
        assert_eq!(descriptors(), before);
    });
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("procfs is mounted")
        .count()
}

/// Waits until no more are open than so many: some are closed in the background, or by other threads.
pub async fn settle(open: usize) {
    for _ in 0..20_000 {
        if descriptors() <= open {
            return;
        }
        glommio::timer::sleep(Duration::from_millis(1)).await;
    }
    panic!("{} descriptors stay open, of {open}", descriptors());
}

/// Threads of this process, without those of the kernel (io-wq), which come and go.
pub fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("procfs is mounted");
    // A thread that ends meanwhile has no name any more.
    let names = tasks.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.filter(|it| !it.starts_with("iou-wrk-")).count()
}

/// Resident memory of this process in bytes.
pub fn resident_bytes() -> usize {
    memory_bytes(1)
}

/// Address space of this process in bytes.
pub fn mapped_bytes() -> usize {
    memory_bytes(0)
}

fn memory_bytes(column: usize) -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("procfs is mounted");
    let pages = statm.split_whitespace().nth(column);
    let pages: usize = pages.and_then(|it| it.parse().ok()).expect("a number");
    // SAFETY: it takes a number.
    let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages * usize::try_from(page_bytes).expect("a page has a size")
}

/// The CPUs that the calling thread may run on, in ascending order.
pub fn permitted_cpus() -> Vec<usize> {
    let mask = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).expect("it has a mask");
    (0..nix::sched::CpuSet::count())
        .filter(|&cpu| mask.is_set(cpu).expect("the number fits"))
        .collect()
}

/// The set of this one CPU, which is online.
pub fn set_of(cpu: usize) -> CpuSet {
    CpuSet::online()
        .expect("sysfs is there")
        .filter(|at| at.cpu == cpu)
}

/// The CPUs of a set, in ascending order.
pub fn cpus_of(set: &CpuSet) -> Vec<usize> {
    let mut cpus: Vec<usize> = set.iter().map(|at| at.cpu).collect();
    cpus.sort_unstable();
    cpus
}

/// Sets the soft limit of this process, which is a child of a test.
pub fn set_limit(resource: nix::sys::resource::Resource, soft: u64) {
    let (_, hard) = nix::sys::resource::getrlimit(resource).expect("the limit exists");
    nix::sys::resource::setrlimit(resource, soft.min(hard), hard).expect("it may be lowered");
}

/// Asserts that types lack a trait: one that has it has two impls of `Ambiguous`, and does not
/// compile.
macro_rules! assert_not {
    ($bound:ident: $($type:ty),+) => {{
        trait Ambiguous<Which> {
            fn call() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + $bound> Ambiguous<u8> for T {}
        $(<$type as Ambiguous<_>>::call();)+
    }};
}
pub(crate) use assert_not;

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("the clock exists")
        .into()
}

/// How often the calling thread gave its CPU away by itself.
pub fn voluntary_switches() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("procfs is mounted");
    status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|count| count.trim().parse().ok())
        .expect("the kernel counts them")
}

/// Waits until `holds`, which other threads bring about; the watchdog bounds the wait.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        thread::sleep(Duration::from_micros(200));
    }
}

/// The best of a few measurements, so that a machine that is busy otherwise does not fail a test.
pub fn best_of(tries: usize, measure: impl FnMut() -> Duration) -> Duration {
    std::iter::repeat_with(measure)
        .take(tries)
        .min()
        .expect("at least one try")
}

/// A waker without effect: its count says how many references are kept.
pub struct Kept;

impl std::task::Wake for Kept {
    fn wake(self: std::sync::Arc<Self>) {}
}

/// Counts its drops.
#[derive(Clone, Default)]
pub struct DropCount(Rc<Cell<usize>>);

/// Counts one when dropped.
pub struct Dropped(Rc<Cell<usize>>);

impl DropCount {
    pub fn guard(&self) -> Dropped {
        Dropped(Rc::clone(&self.0))
    }

    pub fn count(&self) -> usize {
        self.0.get()
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Calls a function when dropped.
pub struct OnDrop<F: FnOnce()>(Option<F>);

pub fn on_drop<F: FnOnce()>(f: F) -> OnDrop<F> {
    OnDrop(Some(f))
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// Panics when it is dropped, with its like: what a panic carries may do that, too.
pub fn bomb() -> impl Send {
    on_drop(|| std::panic::panic_any(on_drop(|| panic!("a bomb went off twice"))))
}

/// What happened, in order: a list that tasks of one thread write to.
#[derive(Debug)]
pub struct Log<T = String>(Rc<RefCell<Vec<T>>>);

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Log(Rc::clone(&self.0))
    }
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Log(Rc::default())
    }
}

impl<T> Log<T> {
    pub fn push(&self, event: T) {
        self.0.borrow_mut().push(event);
    }

    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    pub fn entries(&self) -> Vec<T>
    where
        T: Clone,
    {
        self.0.borrow().clone()
    }

    pub fn take(&self) -> Vec<T> {
        self.0.take()
    }
}

impl Log {
    pub fn note(&self, what: impl Into<String>) {
        self.push(what.into());
    }
}

/// A place where one task waits and hands out its waker.
#[derive(Clone, Default)]
pub struct Parking(Rc<ParkingState>);

#[derive(Default)]
struct ParkingState {
    waker: RefCell<Option<Waker>>,
    is_open: Cell<bool>,
}

impl Parking {
    /// Ends the wait.
    pub fn open(&self) {
        self.0.is_open.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }

    /// The waker of the task that waits.
    pub fn waker(&self) -> Option<Waker> {
        self.0.waker.borrow().clone()
    }
}

impl Future for Parking {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0.is_open.get() {
            return Poll::Ready(());
        }
        *self.0.waker.borrow_mut() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// Random numbers, the same in every run.
pub struct Numbers(fastrand::Rng);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Numbers(fastrand::Rng::with_seed(seed))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }
}
