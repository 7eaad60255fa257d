//! What the kernel says about this process and machine.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use std::{fs, io, thread};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use procfs::process::Process;
use procfs::{CurrentSI, KernelStats, ProcResult};
pub(crate) use support::process::thread_time;

/// Open descriptors, with the same few each time that it takes to count them, and without those
/// that are [held](hold_descriptors).
pub(crate) fn descriptors() -> io::Result<i64> {
    let count = Process::myself().and_then(|process| process.fd_count());
    let held = HELD.load(Ordering::Relaxed);
    Ok(count.map_err(io::Error::other)? as i64 - held)
}

/// As many more descriptors were just opened on purpose, to be closed in a while; fewer than zero
/// if they were closed.
pub(crate) fn hold_descriptors(more: i64) {
    HELD.fetch_add(more, Ordering::Relaxed);
}

static HELD: AtomicI64 = AtomicI64::new(0);

/// Resident memory, at a moment at which none is [held](hold_memory), at the latest that of the call before.
pub(crate) fn resident_bytes() -> io::Result<u64> {
    static LATEST: AtomicU64 = AtomicU64::new(0);
    // For two seconds.
    for _ in 0..400 {
        let (was_held, bytes) = (is_memory_held(), support::process::resident_bytes()?);
        if !was_held && !is_memory_held() {
            LATEST.store(bytes, Ordering::Relaxed);
            return Ok(bytes);
        }
        thread::sleep(Duration::from_millis(5));
    }
    // On a machine that is busy or stops, such calls take longer than that.
    match LATEST.load(Ordering::Relaxed) {
        0 => support::process::resident_bytes(),
        latest => Ok(latest),
    }
}

pub(crate) fn is_memory_held() -> bool {
    HELD_MEMORY.load(Ordering::Relaxed) > 0
}

/// As [`hold_descriptors`], for calls that take much memory for a fraction of a second, and descriptors.
pub(crate) fn hold_memory(more: i64) {
    HELD_MEMORY.fetch_add(more, Ordering::Relaxed);
}

static HELD_MEMORY: AtomicI64 = AtomicI64::new(0);

/// Whether the time of a thread is measured, rather than added up in ticks of 10 ms as in gVisor.
pub(crate) fn is_thread_time_exact() -> bool {
    let before = thread_time();
    loop {
        let passed = thread_time() - before;
        if !passed.is_zero() {
            return passed < Duration::from_millis(1);
        }
    }
}

/// Processor time of this process since it began, in user space and in the kernel.
pub(crate) fn cpu_time() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(us.unsigned_abs()))
}

/// The ticks of all cores since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    cores: u64,
    all: u64,
    /// Those in which a core ran anything at all.
    busy: u64,
    /// Those in which the host of a virtual machine ran something else, though there was work
    /// here.
    stolen: u64,
}

impl Ticks {
    /// None at all where the kernel does not tell.
    pub(crate) fn now() -> Self {
        KernelStats::current().map_or_else(|_| Ticks::default(), |stats| Ticks::of(&stats))
    }

    fn of(stats: &KernelStats) -> Self {
        // The time of guests is part of `user` and `nice`.
        let total = &stats.total;
        let interrupts = total.irq.unwrap_or(0) + total.softirq.unwrap_or(0);
        let busy = total.user + total.nice + total.system + interrupts;
        let stolen = total.steal.unwrap_or(0);
        Ticks {
            cores: stats.cpu_time.len() as u64,
            all: busy + stolen + total.idle + total.iowait.unwrap_or(0),
            busy,
            stolen,
        }
    }

    /// How many cores ran something, and how many the host took away, on average since `earlier`.
    pub(crate) fn cores_since(self, earlier: Ticks) -> Cores {
        let ticks = self.all.saturating_sub(earlier.all).max(1);
        let cores = |now: u64, then: u64| {
            self.cores as f64 * now.saturating_sub(then) as f64 / ticks as f64
        };
        Cores {
            all: self.cores as f64,
            busy: cores(self.busy, earlier.busy),
            stolen: cores(self.stolen, earlier.stolen),
        }
    }
}

/// What became of the machine's cores, over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cores {
    pub(crate) all: f64,
    pub(crate) busy: f64,
    pub(crate) stolen: f64,
}

/// For how long the quota of this process's cgroup, or of one above, has kept threads from running,
/// added up over the cores. Zero where there is none, or where the kernel does not tell.
pub(crate) fn throttled() -> Duration {
    static STATS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let stats = STATS.get_or_init(cpu_stats);
    // A thread that is below two quotas may be stopped by both, which is not twice as long.
    let times = stats
        .iter()
        .filter_map(|stat| fs::read_to_string(stat).ok());
    times.map(|it| throttled_of(&it)).max().unwrap_or_default()
}

/// The `cpu.stat` of the cgroup of this process and of those above it, in either version. A process
/// that is moved to another later on is not followed.
fn cpu_stats() -> Vec<PathBuf> {
    let cgroups = Process::myself().and_then(|process| process.cgroups());
    let of_cpu = cgroups.into_iter().flatten().filter(|it| {
        // Version 2 names none.
        it.controllers.iter().all(String::is_empty) || it.controllers.iter().any(|it| it == "cpu")
    });
    let stats = of_cpu.flat_map(|cgroup| {
        // In a container without a namespace of its own for cgroups, only the last of them is there.
        let below = PathBuf::from(cgroup.pathname.trim_start_matches('/'));
        let paths: Vec<_> = below.ancestors().map(Path::to_owned).collect();
        (paths.into_iter())
            .flat_map(|path| MOUNTS.map(|it| Path::new(it).join(&path).join("cpu.stat")))
    });
    let mut stats: Vec<_> = stats.filter(|it| it.is_file()).collect();
    stats.sort();
    stats.dedup();
    stats
}

/// Where systems and containers mount the hierarchies: that of version 2, also beside those of the
/// first, and those of the first.
const MOUNTS: [&str; 4] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/cpu,cpuacct",
];

/// Of a `cpu.stat`.
fn throttled_of(stat: &str) -> Duration {
    let fields = stat.lines().filter_map(|line| line.split_once(' '));
    let times = fields.filter_map(|(name, value)| match name {
        "throttled_usec" => Some(Duration::from_micros(value.parse().ok()?)),
        // Of version 1.
        "throttled_time" => Some(Duration::from_nanos(value.parse().ok()?)),
        _ => None,
    });
    times.sum()
}

/// For how long a thread has run, and for how long it has waited for a core although it could run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreTime {
    pub(crate) ran: Duration,
    pub(crate) waited: Duration,
}

impl CoreTime {
    pub(crate) fn since(self, earlier: CoreTime) -> CoreTime {
        CoreTime {
            ran: self.ran.saturating_sub(earlier.ran),
            waited: self.waited.saturating_sub(earlier.waited),
        }
    }
}

/// What a thread has waited for a core in a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waited {
    pub(crate) all: Duration,
    /// The most from one look to the next: a wait is counted when it is over, so that none was longer at a stretch.
    pub(crate) longest: Duration,
}

impl Waited {
    pub(crate) fn enter(&mut self, waited: Duration) {
        self.all += waited;
        self.longest = self.longest.max(waited);
    }
}

/// The core time of one of this process's threads. `None`: it is gone, or the kernel keeps no
/// count.
pub(crate) fn core_time(thread_id: i32) -> Option<CoreTime> {
    let schedstat =
        || -> ProcResult<_> { Process::myself()?.task_from_tid(thread_id)?.schedstat() };
    let schedstat = schedstat().ok()?;
    Some(CoreTime {
        ran: Duration::from_nanos(schedstat.sum_exec_runtime),
        waited: Duration::from_nanos(schedstat.run_delay),
    })
}

#[cfg(test)]
mod tests {

    use procfs::{FromReadSI, current_system_info};

    use super::*;

    #[test]
    fn cores_of_a_known_stat() {
        let stat = |user: u64, idle: u64, stolen: u64| {
            let all = format!("cpu  {user} 20 30 {idle} 40 5 6 {stolen} 90 1");
            let stat = format!("{all}\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nctxt 1\nbtime 1\nprocesses 1\n");
            let stats = KernelStats::from_read(stat.as_bytes(), current_system_info())
                .expect("it is complete");
            Ticks::of(&stats)
        };
        let (before, after) = (stat(100, 700, 10), stat(200, 750, 60));
        assert_eq!((before.cores, before.all), (2, 911));
        let all = 2.0;
        let cores = |busy, stolen| Cores { all, busy, stolen };
        assert_eq!(after.cores_since(before), cores(1.0, 0.5));
        assert_eq!(before.cores_since(before), cores(0.0, 0.0));
        assert_eq!(before.cores_since(after), cores(0.0, 0.0));
    }

    #[test]
    fn the_time_that_a_quota_takes_is_known_of_both_versions_of_cgroups() {
        let second = "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods 30\nnr_throttled 7\n\
                      throttled_usec 250000\nnr_bursts 0\nburst_usec 0\n";
        let first = "nr_periods 30\nnr_throttled 7\nthrottled_time 250000000\nnr_bursts 0\n";
        for stat in [second, first] {
            assert_eq!(throttled_of(stat), Duration::from_millis(250));
        }
        // That of a root has no quota.
        assert_eq!(throttled_of("usage_usec 9\nuser_usec 5\n"), Duration::ZERO);
        assert!(throttled() >= throttled_of(""));
    }
}
