//! Readings of the machine: CPU clocks, memory, descriptors, the CPU a thread may use.

use std::fs;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::signal::Signal;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

/// CPU time of the whole process, threads that have ended included.
pub fn process_cpu() -> Duration {
    read(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time of all threads but the calling one: what an executor and its helpers burn, seen by a bystander.
pub fn other_threads_cpu() -> Duration {
    let own = read(ClockId::CLOCK_THREAD_CPUTIME_ID);
    process_cpu().saturating_sub(own)
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock)
        .expect("Linux has had the CPU clocks since 2.6.12")
        .into()
}

/// How often threads of the process gave up their CPU to wait, hence were woken.
pub fn process_waits() -> i64 {
    waits(UsageWho::RUSAGE_SELF)
}

/// The same of all threads but the calling one.
pub fn other_threads_waits() -> i64 {
    process_waits() - waits(UsageWho::RUSAGE_THREAD)
}

fn waits(who: UsageWho) -> i64 {
    getrusage(who)
        .expect("a process may ask for its own usage")
        .voluntary_context_switches()
}

/// Resident bytes of the process, counted page by page: the cheap counter in `statm` may lag by megabytes.
pub fn resident_bytes() -> u64 {
    resident_bytes_of("self")
}

/// The same of any process of the same user: `process` is a number or `self`.
///
/// # Panics
/// If there is no such process.
pub fn resident_bytes_of(process: &str) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"))
        .expect("procfs is mounted, and the process is there");
    let kib = rollup
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|number| number.trim().parse::<u64>().ok())
        .expect("smaps_rollup has a line `Rss: <number> kB`");
    kib * 1024
}

/// Open descriptors of the process. The one that lists them is among them, each time.
pub fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd")
        .expect("procfs is mounted")
        .count()
}

/// Lets the process have as many descriptors as it may ask for, and says how many that are.
pub fn raise_descriptor_limit() -> u64 {
    let (soft, hard) =
        getrlimit(Resource::RLIMIT_NOFILE).expect("a process may ask for its limits");
    match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    }
}

/// Ends the process once the thread is gone that has started it: no server is left behind by a driver that was
/// interrupted.
pub fn die_with_parent() {
    set_pdeathsig(Signal::SIGKILL).expect("SIGKILL is a signal");
}

/// Where the two sides of a conversation run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// On one CPU. No CPU goes to sleep and none is interrupted from afar: what remains is the path through
    /// runtime and kernel, which is what a runtime can change.
    Together,
    /// On two CPUs, as a program would run them. In a virtual machine waking an idle CPU costs tens of
    /// microseconds, and that may be most of the figure.
    Apart,
}

/// The sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that asks, and holds the clock.
    Caller,
    /// The one that answers.
    Answerer,
}

impl Placement {
    /// The name of the row `base` under this placement.
    pub fn row(self, base: &str) -> String {
        match self {
            Placement::Together => base.to_owned(),
            Placement::Apart => format!("{base}-apart"),
        }
    }

    /// Binds the calling thread, and threads it will start, to the CPU of `side`. Left to itself the scheduler
    /// would choose anew in every run, and a figure would say more about its mood than about the runtime.
    pub fn bind(self, side: Side) {
        match (self, side) {
            (Placement::Together, _) | (Placement::Apart, Side::Answerer) => bind_to(1),
            (Placement::Apart, Side::Caller) => bind_to(0),
        }
    }
}

/// Binds the calling thread to the CPU `index`, modulo the number of CPUs there are.
fn bind_to(index: usize) {
    // `available_parallelism` would count the CPUs of a thread that may be bound already.
    let cpus = fs::read_dir("/sys/bus/cpu/devices").map_or(1, |devices| devices.count().max(1));
    let mut set = CpuSet::new();
    set.set(index % cpus).expect("a small CPU number");
    // In a container the CPU may be forbidden: then the thread stays where it may be.
    let _ = sched_setaffinity(Pid::from_raw(0), &set);
}
