//! What the kernel says about this process and machine.

use std::fs;
use std::io;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// Resident memory in bytes.
pub(crate) fn resident_bytes() -> io::Result<u64> {
    parse_kib(&fs::read_to_string("/proc/self/status")?, "VmRSS:")
        .ok_or_else(|| io::Error::other("no VmRSS line in /proc/self/status"))
}

/// Open descriptors, the one that this call opens to count them not included.
pub(crate) fn descriptors() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count().saturating_sub(1))
}

/// The kernel's release, as `uname -r` says it.
pub(crate) fn kernel_release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(
        |_| "unknown".to_owned(),
        |release| release.trim().to_owned(),
    )
}

/// The processor's name for itself, or the architecture's.
pub(crate) fn cpu_model() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or(std::env::consts::ARCH, |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        })
        .to_owned()
}

/// Memory of the machine. Zero: unknown.
pub(crate) fn memory_bytes() -> u64 {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    parse_kib(&meminfo, "MemTotal:").unwrap_or(0)
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
    /// Those in which the host of a virtual machine ran something else, though there was work here.
    stolen: u64,
}

impl Ticks {
    /// None at all where the kernel does not tell.
    pub(crate) fn now() -> Self {
        parse_ticks(&fs::read_to_string("/proc/stat").unwrap_or_default()).unwrap_or_default()
    }

    /// How many cores the host took away on average since `earlier`.
    pub(crate) fn cores_stolen_since(self, earlier: Ticks) -> f64 {
        let ticks = self.all.saturating_sub(earlier.all).max(1);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        self.cores as f64 * stolen as f64 / ticks as f64
    }
}

/// Of `/proc/stat`, see proc_stat(5).
fn parse_ticks(stat: &str) -> Option<Ticks> {
    let all = stat.lines().next()?.strip_prefix("cpu ")?;
    // What follows them, the time of guests, is part of the others.
    let kinds: Vec<u64> = all
        .split_ascii_whitespace()
        .take(STOLEN + 1)
        .map(|ticks| ticks.parse().ok())
        .collect::<Option<_>>()?;
    let cores = stat.lines().skip(1).filter(|line| line.starts_with("cpu"));
    Some(Ticks {
        cores: cores.count() as u64,
        all: kinds.iter().sum(),
        stolen: *kinds.get(STOLEN)?,
    })
}

/// Which of the kinds of time it is.
const STOLEN: usize = 7;

/// Cores this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The kernel's number of the calling thread.
pub(crate) fn thread_id() -> Option<u32> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// For how long a thread has run, and for how long it has waited for a core although it could run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreTime {
    pub(crate) ran: Duration,
    pub(crate) waited: Duration,
}

/// The core time of one of this process's threads. `None`: it is gone, or the kernel keeps no count.
pub(crate) fn core_time(thread_id: u32) -> Option<CoreTime> {
    parse_core_time(&fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat")).ok()?)
}

fn parse_core_time(schedstat: &str) -> Option<CoreTime> {
    let mut fields = schedstat.split_ascii_whitespace().map(str::parse);
    let mut next = || Some(Duration::from_nanos(fields.next()?.ok()?));
    Some(CoreTime {
        ran: next()?,
        waited: next()?,
    })
}

/// The value of a line such as `VmRSS:  1234 kB`, in bytes.
fn parse_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_of_a_known_status() {
        let status = "VmPeak:\t  10 kB\nVmRSS:\t    1234 kB\nRssAnon:\t 1 kB\n";
        assert_eq!(parse_kib(status, "VmRSS:"), Some(1234 * 1024));
        assert_eq!(parse_kib("VmPeak:\t 10 kB\n", "VmRSS:"), None);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_bytes().expect("procfs is mounted") > 64 * 1024);
    }

    #[test]
    fn this_machine_has_a_processor_and_memory() {
        assert!(!cpu_model().is_empty());
        assert!(memory_bytes() > 1 << 20);
        let before = cpu_time().expect("the kernel counts it");
        assert!(cpu_time().expect("the kernel counts it") >= before);
    }

    #[test]
    fn core_time_of_a_known_schedstat() {
        let known = CoreTime {
            ran: Duration::from_nanos(1_234),
            waited: Duration::from_nanos(56),
        };
        assert_eq!(parse_core_time("1234 56 7\n"), Some(known));
        assert_eq!(parse_core_time("1234\n"), None);
        assert_eq!(parse_core_time("x y z\n"), None);
    }

    #[test]
    fn stolen_time_of_a_known_stat() {
        let stat = |idle: u64, stolen: u64| {
            let all = format!("cpu  100 20 30 {idle} 40 5 6 {stolen} 90 1");
            parse_ticks(&format!("{all}\ncpu0 1 1\ncpu1 1 1\nintr 5\n")).expect("it is complete")
        };
        let (before, after) = (stat(700, 10), stat(850, 60));
        assert_eq!((before.cores, before.all), (2, 911));
        assert_eq!(after.cores_stolen_since(before), 0.5);
        assert_eq!(before.cores_stolen_since(before), 0.0);
        assert_eq!(before.cores_stolen_since(after), 0.0);
        assert_eq!(parse_ticks("cpu  1 2 3\n"), None);
        assert_eq!(parse_ticks(""), None);
    }

    #[test]
    fn this_machine_counts_its_ticks() {
        let now = Ticks::now();
        assert!(now.cores > 0 && now.all >= now.stolen, "{now:?}");
    }

    #[test]
    fn threads_have_numbers_of_their_own() {
        let other = std::thread::spawn(thread_id)
            .join()
            .expect("it does not panic");
        assert!(thread_id().is_some());
        assert_ne!(thread_id(), other);
    }

    // Other tests of this binary open files at the same time, so only a lower bound is certain.
    #[test]
    fn descriptors_count_what_is_open() {
        let held: Vec<_> = (0..50)
            .map(|_| fs::File::open("/dev/null").expect("it exists"))
            .collect();
        assert!(descriptors().expect("procfs is mounted") >= held.len());
    }
}
