//! Building a ring: the most ambitious set of flags that this kernel takes, and clear words when it
//! takes none.
//!
//! | mode    | flags                                           | kernel | completions appear          |
//! |---------|-------------------------------------------------|--------|-----------------------------|
//! | `defer` | `SINGLE_ISSUER`, `DEFER_TASKRUN`, `TASKRUN_FLAG` | 6.1    | when this thread enters     |
//! | `coop`  | `COOP_TASKRUN`, `TASKRUN_FLAG`                    | 5.19   | when this thread enters the kernel for whatever reason |
//! | `plain` | none                                            | 5.11   | at any time                 |
//!
//! `SUBMIT_ALL`, `CLAMP` and a larger completion queue go with the first two; `CLAMP` and the
//! larger queue with the third. Capabilities are found by trying, not by reading version strings.
//! The environment variable `GLOMMIO_RING` (`defer`, `coop` or `plain`) starts the ladder lower,
//! which tests the step-down on a modern kernel and works around a kernel's defect without a new
//! build. What may be had or not, whatever the mode, is in [`features`](crate::ring::features).
//!
//! Every ring says in the log, at the level `debug`, what became of it: its `mode`, which modes the
//! kernel `refused`, its `entries`, the features that it `uses`, that it `lacks` here, and those
//! done `without` because the environment says so. Modes and features are lists with commas, as the
//! environment takes them.

#![allow(unsafe_code)]

use std::sync::OnceLock;
use std::time::Duration;
use std::{fmt, io, thread};

use io_uring::{IoUring, Parameters, Probe, opcode};

use super::instance;
use super::iowq_workaround::replace_last_worker;
use super::refusal::{explain, explain_no_memory, refuse};
use crate::error::GlommioError;
use crate::ring::Driver;
use crate::ring::features::{Features, KernelFlags};
use crate::sys::fork_detect::Origin;
use crate::sys::limits;
use crate::sys::time_namespace::is_clock_shifted;

/// The most entries that the kernel gives a submission queue.
const MAX_DEPTH: u32 = 32_768;

/// Completion queue entries per submission queue entry. Multishot operations complete many times.
const COMPLETIONS_PER_SUBMISSION: u32 = 4;

/// The largest completion queue that is asked for on account of cancellations.
///
/// The kernel looks for an operation to cancel in a table whose size goes by the completion queue:
/// one list for 32 entries, and 256 lists at most, which so many entries give. With the 16 lists of
/// 512 entries, a cancellation took 456 µs with 100,000 idle connections and 8 µs with 1,000;
/// with 256 it is 40 and 9 µs (Linux 6.18). It costs 120 KiB, and 20 to 35 µs when the ring is made,
/// so only an executor that may come to have that many descriptors gets it.
const COMPLETIONS: u32 = 8192;

/// Descriptors that an executor may come to have, for each entry of the completion queue: with one
/// connection for each, a list has 64 to 128 of them, as long as there are fewer than 256 lists. A
/// client that is cut off for its silence is among the oldest, and so at the end of its list.
const DESCRIPTORS_PER_COMPLETION: u64 = 2;

/// The part of a ring's share of what the user may lock that a completion queue takes at most on that
/// account: Linux 6.14 and later charge the rings of all processes of a user to it, and registered
/// memory.
const LOCKED_PART: u64 = 4;

/// The size of an entry of the completion queue.
const COMPLETION_BYTES: u64 = 16;

/// Workers of the kernel for what may take any time, that is, for all but files on devices and
/// operations on paths: those have some for each CPU. Its own bound is the number of threads that
/// the user may have, and where they are used up, no other operation gets a worker (`ECANCELED`),
/// nor the process a thread.
pub(super) const UNBOUND_WORKERS: u32 = 64;

/// Smaller rings are for those who want small ones, or for want of memory.
const SMALL_DEPTH: u32 = 128;

/// How completions reach the completion queue; see the module's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Defer,
    Coop,
    Plain,
}

/// As the environment names it.
impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Defer => "defer",
            Mode::Coop => "coop",
            Mode::Plain => "plain",
        })
    }
}

const LADDER: [Mode; 3] = [Mode::Defer, Mode::Coop, Mode::Plain];

/// A ring as the kernel gives it.
pub(super) struct Built {
    pub(super) ring: IoUring,
    pub(super) origin: Origin,
    pub(super) mode: Mode,
    pub(super) features: Features,
}

/// Builds a ring of the first mode from `first` on that the kernel takes. See
/// [`KernelRing::new`](super::KernelRing::new).
pub(super) fn build_best(
    depth: usize,
    executors: usize,
    first: Mode,
) -> Result<Built, GlommioError<()>> {
    let depth = clamp_depth(depth);
    let origin = Origin::here()?;
    let mut refused = Vec::new();
    let completions = completions_of(depth, executors);
    for mode in LADDER.into_iter().skip_while(|&mode| mode != first) {
        match build_patiently(mode, depth, completions) {
            Ok(mut ring) => {
                try_enter(&ring).map_err(explain)?;
                let found = check_capabilities(&ring)?;
                replace_last_worker(&mut ring).map_err(explain)?;
                // Before Linux 5.15 there is no bound but that of the user's threads.
                let _ = ring
                    .submitter()
                    .register_iowq_max_workers(&mut [0, UNBOUND_WORKERS]);
                let mut features = found.features;
                if is_clock_shifted(origin) {
                    features = features.in_shifted_time();
                }
                let used = features.and(found.forbidden.others());
                log(&ring, mode, &refused, features, used);
                return Ok(Built {
                    ring,
                    origin,
                    mode,
                    features: used,
                });
            }
            // The kernel does not know one of the flags: one step down.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                refused.push((mode, error));
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                let needed = executors as u64 * locked_bytes(depth, completions);
                return Err(explain_no_memory(error, needed));
            }
            Err(error) => return Err(explain(error)),
        }
    }
    let (_, error) = refused.pop().expect("the ladder has at least one step");
    Err(explain(error))
}

fn log(
    ring: &IoUring,
    mode: Mode,
    refused: &[(Mode, io::Error)],
    features: Features,
    used: Features,
) {
    let refused: Vec<String> = refused.iter().map(|(mode, _)| mode.to_string()).collect();
    tracing::debug!(
        driver = %Driver::IoUring,
        %mode,
        refused = refused.join(","),
        entries = ring.params().sq_entries(),
        uses = %used,
        lacks = %features.others(),
        without = %features.and(used.others()),
        "a ring is set up"
    );
}

/// Where locked memory is limited, the kernel charges a ring to it, and takes the charge back only
/// some ten to thirty milliseconds after the ring was closed, more if many were: a program that
/// drops and makes executors one after the other may find none left for a moment. Goes without the
/// larger completion queue first, then waits a second in all, then makes do with a smaller ring, which
/// only means smaller batches.
fn build_patiently(mode: Mode, mut depth: u32, mut completions: u32) -> io::Result<IoUring> {
    const LONGEST_PAUSE: Duration = Duration::from_millis(512);
    const SMALLEST_DEPTH: u32 = 8;
    let mut pause = Duration::from_millis(1);
    loop {
        match build(mode, depth, completions) {
            Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
                warn_of_limit();
                if completions > fewest_completions(depth) {
                    completions = fewest_completions(depth);
                } else if pause <= LONGEST_PAUSE {
                    thread::sleep(pause);
                    pause *= 2;
                } else if depth > SMALLEST_DEPTH {
                    depth /= 2;
                    completions = fewest_completions(depth);
                } else {
                    return Err(error);
                }
            }
            result => return result,
        }
    }
}

/// Once, and while executors can still be made as a rule.
fn warn_of_limit() {
    static SAID: OnceLock<()> = OnceLock::new();
    let limit = limits::lockable_bytes();
    if limit < u64::MAX && SAID.set(()).is_ok() {
        tracing::warn!(
            limit,
            "locked memory is short: rings are smaller than they should be, or are waited for; RLIMIT_MEMLOCK \
             counts those of all processes of the user, and `ulimit -l` or `LimitMEMLOCK=` raises it"
        );
    }
}

fn build(mode: Mode, depth: u32, completions: u32) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_clamp().setup_cqsize(completions);
    match mode {
        Mode::Defer => builder
            .setup_submit_all()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag(),
        Mode::Coop => builder
            .setup_submit_all()
            .setup_coop_taskrun()
            .setup_taskrun_flag(),
        Mode::Plain => &mut builder,
    };
    builder.dontfork().build(depth)
}

/// The size of the completion queue of the next ring, for one of `executors` that are made together.
fn completions_of(depth: u32, executors: usize) -> u32 {
    // The rings that there are were given their shares when they were made. Those that are made together
    // are among them or not.
    let sharing = executors.max(instance::open() + 1);
    let lockable = limits::locked_memory_limit_bytes() / sharing as u64;
    let descriptors = limits::descriptor_limit() / executors.max(1) as u64;
    completions_wanted(depth, descriptors, lockable)
}

/// The size of the completion queue of the main ring of an executor that may come to have so many
/// descriptors, if its share of locked memory is so many bytes. A power of two, as the kernel would
/// make it.
pub(super) fn completions_wanted(depth: u32, descriptors: u64, lockable_bytes: u64) -> u32 {
    let fewest = fewest_completions(depth);
    if depth < SMALL_DEPTH {
        return fewest;
    }
    let wanted = (descriptors / DESCRIPTORS_PER_COMPLETION).min(u64::from(COMPLETIONS));
    let allowed = lockable_bytes / LOCKED_PART / COMPLETION_BYTES;
    // Rounded down: a queue that is half empty costs as much.
    let fitting = wanted.min(allowed).checked_ilog2().map_or(0, |it| 1 << it);
    fewest.max(fitting)
}

fn fewest_completions(depth: u32) -> u32 {
    let multiple = depth.saturating_mul(COMPLETIONS_PER_SUBMISSION);
    multiple.next_power_of_two()
}

/// What such a ring is charged at most: both queues, and two pages for their heads and for rounding.
fn locked_bytes(depth: u32, completions: u32) -> u64 {
    const SUBMISSION_BYTES: u64 = 64 + 4;
    let depth = u64::from(depth.next_power_of_two());
    depth * SUBMISSION_BYTES + u64::from(completions) * COMPLETION_BYTES + (8 << 10)
}

/// The depth that is asked of the kernel, which rounds up to a power of two.
fn clamp_depth(depth: usize) -> u32 {
    match u32::try_from(depth) {
        Ok(depth) if depth <= MAX_DEPTH => depth,
        _ => {
            static SAID: OnceLock<()> = OnceLock::new();
            SAID.get_or_init(|| {
                tracing::info!(
                    "ring depth {depth} is more than the kernel offers: using {MAX_DEPTH}"
                );
            });
            MAX_DEPTH
        }
    }
}

pub(super) fn requested_mode() -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    *MODE.get_or_init(|| match std::env::var("GLOMMIO_RING").as_deref() {
        Ok("coop") => Mode::Coop,
        Ok("plain") => Mode::Plain,
        Ok("defer") | Err(_) => Mode::Defer,
        Ok(other) => {
            tracing::warn!("GLOMMIO_RING={other}: not one of defer, coop, plain; using defer");
            Mode::Defer
        }
    })
}

/// What one look at the kernel has brought to light.
struct Found {
    /// What this crate cannot do without, in words.
    missing: Option<String>,
    features: Features,
    forbidden: Features,
}

/// Looks once per process whether the kernel has what this crate cannot do without, and what it has
/// of the rest.
fn check_capabilities(ring: &IoUring) -> Result<&'static Found, GlommioError<()>> {
    static FOUND: OnceLock<Found> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return refuse(found.missing.as_deref()).map(|()| found);
    }
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(explain)?;
    let needed = [
        ("NOP", opcode::Nop::CODE),
        ("POLL_ADD", opcode::PollAdd::CODE),
        ("ACCEPT", opcode::Accept::CODE),
        ("CONNECT", opcode::Connect::CODE),
        ("TIMEOUT", opcode::Timeout::CODE),
        ("TIMEOUT_REMOVE", opcode::TimeoutRemove::CODE),
        ("ASYNC_CANCEL", opcode::AsyncCancel::CODE),
    ];
    let params = ring.params();
    let operations = needed
        .iter()
        .filter(|(_, code)| !probe.is_supported(*code))
        .map(|(name, _)| *name);
    let missing: Vec<&str> = operations.chain(abilities_missing(params)).collect();
    let found = FOUND.get_or_init(|| Found {
        missing: (!missing.is_empty()).then(|| missing.join(", ")),
        features: Features::of_kernel(&probe, KernelFlags::of(params)),
        forbidden: Features::forbidden(),
    });
    refuse(found.missing.as_deref()).map(|()| found)
}

/// What cannot be done without and is known by the flags of a ring.
fn abilities_missing(params: &Parameters) -> impl Iterator<Item = &'static str> {
    let abilities = [
        (
            params.is_feature_ext_arg(),
            "waiting with a deadline (EXT_ARG)",
        ),
        (
            params.is_feature_nodrop(),
            "completions that survive a full queue (NODROP)",
        ),
        // Polls that stay came in the same release. Without them each sleep would end at once.
        (
            params.is_feature_resource_tagging(),
            "watching a descriptor for good (as old as RSRC_TAGS)",
        ),
    ];
    abilities
        .into_iter()
        .filter(|(is_there, _)| !is_there)
        .map(|(_, name)| name)
}

/// Enters for nothing. A seccomp profile may allow io_uring to be set up and not to be used; it
/// belongs to the thread, so each ring is tried.
fn try_enter(ring: &IoUring) -> io::Result<()> {
    // SAFETY: no argument is passed, so there is nothing to be valid.
    let entered = unsafe { ring.submitter().enter::<libc::sigset_t>(0, 0, 0, None) };
    match entered {
        Err(error) if error.raw_os_error() != Some(libc::EINTR) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_cannot_do_what_is_needed_is_refused() {
        let ring = build(Mode::Plain, 2, 8).expect("this machine has io_uring");
        assert_eq!(abilities_missing(ring.params()).count(), 0);
        for (flag, name) in [
            (1_u32 << 8, "EXT_ARG"),
            (1 << 1, "NODROP"),
            (1 << 10, "for good"),
        ] {
            let mut params = ring.params().clone();
            // The kernel's structure begins with five numbers of this size; its features are the
            // sixth.
            let features = (&raw mut params).cast::<u32>().wrapping_add(5);
            // SAFETY: `params` is a transparent wrapper of that structure, which has 120 bytes.
            unsafe { features.write(features.read() & !flag) };
            let missing: Vec<&str> = abilities_missing(&params).collect();
            assert!(
                missing.len() == 1 && missing[0].contains(name),
                "{missing:?}"
            );
        }
    }
}
