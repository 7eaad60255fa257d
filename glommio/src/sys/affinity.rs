//! The CPUs that a thread may run on.
//!
//! Owns the affinity mask of the calling thread: reads it, sets it, and hands it
//! out as a value so that it can be put back later or asked about. A new thread
//! starts with the mask of its parent, which is why a mask is saved before an
//! executor binds itself.
//!
//! The invariant is that a mask only holds ids below [`CPU_IDS`], the size of the
//! C library's `cpu_set_t`; larger ids are refused before the kernel is asked.
//!
//! Cost: one system call to read or to apply, a bit operation to ask; a thread to find out what the
//! process may use.

use std::{io, thread};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::error::advised;

/// A set of CPU ids that a thread may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AffinityMask(CpuSet);

impl AffinityMask {
    /// The mask of the calling thread; `None` on machines that can have more than
    /// [`CPU_IDS`] CPUs, as the kernel does not cut masks short.
    ///
    /// # Errors
    ///
    /// Whatever else the kernel said.
    pub(crate) fn of_calling_thread() -> io::Result<Option<Self>> {
        match sched_getaffinity(CALLING_THREAD) {
            Ok(mask) => Ok(Some(AffinityMask(mask))),
            Err(Errno::EINVAL) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The CPUs that this process may use: those of its cpuset. A thread that is bound to a few of
    /// them, by `taskset` too, may still use the others. `None` where that cannot be found out.
    ///
    /// Starts a thread for it, which asks for all CPUs and sees what it gets: the files of cgroups
    /// are not always there to be read in a container.
    pub(crate) fn of_process() -> Option<Self> {
        let ask = || -> io::Result<Option<Self>> {
            sched_setaffinity(CALLING_THREAD, &AffinityMask::of_every_cpu()?.0)?;
            AffinityMask::of_calling_thread()
        };
        let asking = thread::Builder::new().spawn(ask).ok()?;
        asking.join().ok()?.ok()?
    }

    /// As many CPUs as a mask has: the kernel makes of it those that the process may use.
    pub(crate) fn of_every_cpu() -> io::Result<Self> {
        AffinityMask::from_cpus(0..CPU_IDS)
    }

    /// The mask of exactly these CPUs.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for an id of [`CPU_IDS`] or above.
    pub(crate) fn from_cpus(cpus: impl IntoIterator<Item = usize>) -> io::Result<Self> {
        let mut mask = CpuSet::new();
        for cpu in cpus {
            mask.set(cpu)?;
        }
        Ok(AffinityMask(mask))
    }

    /// Binds the calling thread to this mask.
    ///
    /// CPUs that are offline or forbidden to the process are ignored by the
    /// kernel as long as one is left.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the thread may run on none of these CPUs; it names those that it may.
    pub(crate) fn apply(&self) -> io::Result<()> {
        sched_setaffinity(CALLING_THREAD, &self.0).map_err(|errno| {
            let mut text = format!("a thread cannot be bound to the CPUs {:?}", self.cpus());
            if let Some(usable) = AffinityMask::of_process() {
                text += &format!(": this process may use the CPUs {:?}", usable.cpus());
            }
            let source = io::Error::from(errno);
            advised(source.kind(), text, source)
        })
    }

    pub(crate) fn cpus(&self) -> Vec<usize> {
        (0..CPU_IDS).filter(|&cpu| self.contains(cpu)).collect()
    }

    /// The number of CPUs.
    pub(crate) fn len(&self) -> usize {
        self.cpus().len()
    }

    pub(crate) fn contains(&self, cpu: usize) -> bool {
        cpu < CPU_IDS
            && self
                .0
                .is_set(cpu)
                .expect("the only error is an id that no mask holds")
    }
}

/// What system calls take for "the thread that asks".
const CALLING_THREAD: Pid = Pid::from_raw(0);

/// One more than the largest CPU id a mask can hold.
const CPU_IDS: usize = CpuSet::count();

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Runs in a thread of its own, since the mask outlives the test.
    fn on_own_thread(test: impl FnOnce() + Send + 'static) {
        thread::spawn(test)
            .join()
            .expect("the test in the thread passes");
    }

    fn bind_calling_thread(cpus: impl IntoIterator<Item = usize>) -> io::Result<()> {
        AffinityMask::from_cpus(cpus)?.apply()
    }

    fn own_mask() -> AffinityMask {
        let mask = AffinityMask::of_calling_thread().unwrap();
        mask.expect("tests run on machines of up to 1024 CPUs")
    }

    fn permitted_cpus() -> Vec<usize> {
        let mask = own_mask();
        (0..CPU_IDS).filter(|cpu| mask.contains(*cpu)).collect()
    }

    #[test]
    fn a_bound_thread_has_exactly_that_mask() {
        on_own_thread(|| {
            let cpu = *permitted_cpus().last().unwrap();
            bind_calling_thread([cpu]).unwrap();
            assert_eq!(permitted_cpus(), [cpu]);
            assert_eq!(own_mask(), AffinityMask::from_cpus([cpu]).unwrap());
            assert_eq!(nix::sched::sched_getcpu().unwrap(), cpu);
        });
    }

    #[test]
    fn a_saved_mask_can_be_put_back() {
        on_own_thread(|| {
            let before = own_mask();
            bind_calling_thread(permitted_cpus().into_iter().take(1)).unwrap();
            before.apply().unwrap();
            assert_eq!(own_mask(), before);
        });
    }

    #[test]
    fn all_ids_that_fit_are_taken_and_the_next_is_not() {
        assert_eq!(CPU_IDS, 1024);
        on_own_thread(|| {
            bind_calling_thread(0..CPU_IDS).unwrap();
            let error = bind_calling_thread(0..=CPU_IDS).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            let error = bind_calling_thread([usize::MAX]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        });
    }

    #[test]
    fn a_mask_without_any_cpu_is_refused() {
        on_own_thread(|| {
            let before = permitted_cpus();
            let error = bind_calling_thread([]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(permitted_cpus(), before);
        });
    }

    #[test]
    fn a_thread_that_may_not_run_where_it_should_is_told_where_it_may() {
        on_own_thread(|| {
            let error = bind_calling_thread([CPU_IDS - 1]).unwrap_err().to_string();
            let usable = AffinityMask::of_process().expect("threads may ask").cpus();
            assert!(error.contains("the CPUs [1023]"), "{error}");
            assert!(
                error.contains(&format!("may use the CPUs {usable:?}")),
                "{error}"
            );
        });
    }

    #[test]
    fn a_bound_thread_does_not_limit_its_process() {
        let whole = AffinityMask::of_process().expect("threads may ask");
        on_own_thread(move || {
            let permitted = permitted_cpus();
            assert!(permitted.iter().all(|&cpu| whole.contains(cpu)));
            bind_calling_thread(permitted.into_iter().take(1)).unwrap();
            let bound = own_mask();
            assert_eq!(AffinityMask::of_process(), Some(whole));
            // Nor has this thread been changed by asking.
            assert_eq!((own_mask(), own_mask().len()), (bound, 1));
        });
    }

    #[test]
    fn no_mask_holds_an_id_that_does_not_fit() {
        let everything = AffinityMask::from_cpus(0..CPU_IDS).unwrap();
        assert!(everything.contains(CPU_IDS - 1));
        assert!(!everything.contains(CPU_IDS));
        assert!(!everything.contains(usize::MAX));
    }
}
