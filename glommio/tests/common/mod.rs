//! What the test programs share: a watchdog, child processes, and looks into `/proc`.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test program compiles this file and uses a part of it"
)]

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process::{Command, Output, Stdio};
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

pub mod hooks;
pub mod log;
pub mod loud_clone;
pub mod polled;
pub mod prelude;
pub mod rationed;
pub mod seccomp;
pub mod skipped;

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

/// Runs `body`, a closure of a test, in a process of its own: this test program started anew for that test.
pub fn in_child(body: impl FnOnce()) {
    in_child_with(&[], body);
}

/// The name of the test that `body` is a closure of, or that has given one to the function that `body` is a closure of.
fn test_of<F>(_body: &F) -> &'static str {
    let path = std::any::type_name::<F>();
    let path = path
        .split("::{{closure}}")
        .next()
        .expect("there is a first part");
    let path = path.rsplit('<').next().expect("there is a last part");
    path.split_once("::")
        .expect("the program and the path in it")
        .1
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

/// As [`in_child`], with further environment variables.
pub fn in_child_with(environment: &[(&str, &str)], body: impl FnOnce()) {
    in_child_of(without_input, environment, body);
}

/// As [`in_child`], with this standard input.
pub fn in_child_with_input(input: impl Into<Stdio>, body: impl FnOnce()) {
    let start = |itself: &OsStr| {
        let mut command = Command::new(itself);
        command.stdin(input);
        command
    };
    in_child_of(start, &[], body);
}

const CHILD: &str = "GLOMMIO_TEST_CHILD";

fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|running| running == test)
}

/// Runs `body` in a process that `start` makes of the path of this test program.
fn in_child_of(
    start: impl FnOnce(&OsStr) -> Command,
    environment: &[(&str, &str)],
    body: impl FnOnce(),
) {
    let _watchdog = watchdog();
    let test = test_of(&body);
    if is_child(test) {
        return body();
    }
    let environment = [&[(CHILD, test)], environment].concat();
    let output = child_output(start, &only(test), &environment);
    let printed = succeeded(test, output);
    assert!(
        printed.contains("1 passed"),
        "{test} is not the name of this test:\n{printed}"
    );
}

/// As [`in_child`], for a `body` that ends the process by itself, with success. What it has printed
/// by then.
pub fn ending_child(body: impl FnOnce()) -> String {
    let test = test_of(&body);
    if is_child(test) {
        let _watchdog = watchdog();
        body();
        eprintln!("{test} was to end the process");
        std::process::abort();
    }
    let _watchdog = watchdog();
    let output = child_output(without_input, &only(test), &[(CHILD, test)]);
    let printed = succeeded(test, output);
    assert!(
        printed.contains("running 1 test"),
        "{test} is not the name of this test:\n{printed}"
    );
    printed
}

fn without_input(program: &OsStr) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// The arguments with which a test program runs one test.
fn only(test: &str) -> [&str; 4] {
    ["--exact", test, "--nocapture", "--test-threads=1"]
}

/// Runs all tests of this program again whose names have one of `filters` in them, in one process
/// of their own with further environment variables; but not `test`, which is where this is called.
pub fn again_with(test: &str, environment: &[(&str, &str)], filters: &[&str]) {
    let _watchdog = watchdog();
    let arguments = [filters, &["--skip", test]].concat();
    let output = child_output(without_input, &arguments, environment);
    let printed = succeeded(test, output);
    assert!(
        !printed.contains(" 0 passed"),
        "there are no such tests:\n{printed}"
    );
}

/// As [`in_child`], in a time namespace in which the monotonic clock is so many seconds ahead of
/// the host's, or behind it. Says so where that is not allowed, and does nothing.
pub fn in_time_namespace(offset_seconds: i64, body: impl FnOnce()) {
    let offset = offset_seconds.to_string();
    in_namespace(["-T", "-rT"], &["--monotonic", &offset], body);
}

/// As [`in_child`], in a network namespace of its own, in which the settings of the network may be
/// changed and no device is up. Says so where that is not allowed, and does nothing.
pub fn in_network_namespace(body: impl FnOnce()) {
    in_namespace(["-n", "-rn"], &[], body);
}

/// In a namespace that `unshare` makes with the first of `flags` that is allowed, and `more`.
fn in_namespace(flags: [&str; 2], more: &[&str], body: impl FnOnce()) {
    if is_child(test_of(&body)) {
        return in_child(body);
    }
    let unshare = |flags: &str, program: &OsStr| {
        let mut command = without_input("unshare".as_ref());
        command.arg(flags).args(more).arg(program);
        command
    };
    let is_allowed = |flags: &&str| {
        let trial = unshare(flags, "true".as_ref()).output();
        trial.is_ok_and(|trial| trial.status.success())
    };
    match flags.into_iter().find(is_allowed) {
        Some(flags) => in_child_of(|itself| unshare(flags, itself), &[], body),
        None => skipped::skipped("`unshare` may make no such namespace here"),
    }
}

/// As [`in_child`], for a `body` that aborts its process; what it wrote to the standard error.
pub fn aborts_in_child(body: impl FnOnce()) -> String {
    let _watchdog = watchdog();
    let test = test_of(&body);
    if is_child(test) {
        body();
        std::process::exit(0);
    }
    let output = child_output(without_input, &only(test), &[(CHILD, test)]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGABRT),
        "the child of {test} ended with {}:\n{stderr}",
        output.status
    );
    stderr
}

/// What this test program does when it is started anew.
fn child_output(
    start: impl FnOnce(&OsStr) -> Command,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Output {
    let itself = std::env::current_exe().expect("the program knows where it is");
    start(itself.as_os_str())
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("the test program can be started again")
}

/// What the child of a test has printed, which must have succeeded.
fn succeeded(test: &str, output: Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    skipped::relay(&stderr);
    assert!(
        output.status.success(),
        "the child of {test} ended with {}\n{stdout}\n{stderr}",
        output.status
    );
    stdout
}

/// Runs `child` in a forked child of this process, which is a child of a test, and asserts that it ended well.
pub fn fork(child: impl FnOnce()) {
    let patience = patient(Duration::from_secs(100)).as_secs();
    // SAFETY: the child runs what the test needs: memory, the log of a panic, descriptors, a ring. None of the other
    // threads of this process, which are asleep, holds a lock that these take.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "{}", std::io::Error::last_os_error());
    if pid == 0 {
        // SAFETY: it takes a number. The watchdog is not in this process.
        unsafe { libc::alarm(patience.try_into().expect("a few hours")) };
        let is_well = catch_unwind(AssertUnwindSafe(child)).is_ok();
        // SAFETY: always allowed. No destructors of what belongs to the parent.
        unsafe { libc::_exit(if is_well { FORK_ENDED_WELL } else { 1 }) };
    }
    wait_for_fork(pid);
}

/// What a forked child ends with.
pub const FORK_ENDED_WELL: i32 = 42;

/// Waits for a forked child, and asserts that it ended well.
pub fn wait_for_fork(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is a place for a number.
    let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(waited, pid);
    assert!(
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == FORK_ENDED_WELL,
        "the forked child ended with status {status:#x}"
    );
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("procfs is mounted")
        .count()
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
