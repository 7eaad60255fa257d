//! Counts of work, for tests that hold how costs grow. They cost nothing in other builds.

#[cfg(test)]
use std::cell::Cell;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Segments, and entries of blocks of them, that were copied to change a list.
    Copied,
    /// Delete intervals that were copied to change a skyline.
    CopiedIntervals,
    /// Segments, blocks of segments and delete intervals that were looked at one by one.
    Visited,
    /// Rows that were compared with one that seeks its place near the end of a lane.
    Compared,
    /// Rows of late runs that were merged.
    Merged,
}

#[cfg(test)]
thread_local! {
    static DONE: [Cell<usize>; 5] = const { [const { Cell::new(0) }; 5] };
}

#[inline]
pub(crate) fn count(work: Work, times: usize) {
    #[cfg(test)]
    DONE.with(|done| {
        let done = &done[work as usize];
        done.set(done.get() + times);
    });
    #[cfg(not(test))]
    let _ = (work, times);
}

/// How much of it `f` does.
#[cfg(test)]
pub(crate) fn of<T>(work: Work, f: impl FnOnce() -> T) -> (T, usize) {
    let done = || DONE.with(|done| done[work as usize].get());
    let before = done();
    let result = f();
    (result, done() - before)
}
