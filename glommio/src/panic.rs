//! Containment of panics in code that is not the runtime's own: wakers, destructors, blocking
//! calls, and subscribers of the log.
//!
//! Such code is called in the middle of work that has to be finished: a batch of completions, the
//! drop of an executor, the loop of a pool's thread. [`contain`] ends its panic on the spot,
//! [`FirstPanic`] keeps it until the work is done, and [`Fenced`] contains it only where it would
//! abort the process, which is what a panic does that leaves a destructor while another one
//! unwinds.
//!
//! The payload of a panic is foreign code, too: its destructor may panic. The log's subscriber
//! may, too. So payloads are dropped by [`discard`], and events that report a panic are written by
//! [`log`].

#![forbid(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;
use std::{mem, thread};

/// What a panic carries.
pub(crate) type Payload = Box<dyn Any + Send>;

/// Calls `f`. Unlike that of [`catch_unwind`], its error must not be dropped: see [`discard`].
#[inline]
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    catch_unwind(AssertUnwindSafe(f))
}

/// Calls `f`; a panic ends here, with `event` in the log.
#[inline]
pub(crate) fn contain(event: &str, f: impl FnOnce()) {
    if let Err(payload) = catch(f) {
        report(event, payload);
    }
}

/// Ends a panic that was caught, with `event` in the log.
#[cold]
pub(crate) fn report(event: &str, payload: Payload) {
    log(|| tracing::error!("{event}"));
    discard(payload);
}

/// Writes to the log, by `f`, where a panic of the subscriber must not get in between.
pub(crate) fn log(f: impl FnOnce()) {
    // Where should it be logged that logging panicked?
    if let Err(payload) = catch(f) {
        discard(payload);
    }
}

/// The message of a panic, if it has one: what `panic!` with a text makes does.
pub(crate) fn message(payload: &Payload) -> Option<&str> {
    let literal = payload.downcast_ref::<&str>().copied();
    literal.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
}

/// Drops what a panic carried. If its destructor panics, what that one carried, and so on; if that
/// does not end soon, the last of them is leaked.
pub(crate) fn discard(mut payload: Payload) {
    const LONGEST_CHAIN: usize = 8;
    for _ in 0..LONGEST_CHAIN {
        match catch(|| drop(payload)) {
            Ok(()) => return,
            Err(next) => payload = next,
        }
    }
    mem::forget(payload);
}

/// The first of several panics, kept while the work goes on. The others are logged and discarded.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Payload>);

impl FirstPanic {
    /// Calls `f`. `None` if it panicked.
    pub(crate) fn catch<R>(&mut self, f: impl FnOnce() -> R) -> Option<R> {
        match catch(f) {
            Ok(value) => return Some(value),
            Err(payload) if self.0.is_none() => self.0 = Some(payload),
            Err(payload) => report(
                "one more destructor has panicked; the first goes on",
                payload,
            ),
        }
        None
    }

    pub(crate) fn take(&mut self) -> Option<Payload> {
        self.0.take()
    }
}

impl Drop for FirstPanic {
    fn drop(&mut self) {
        if let Some(payload) = self.take() {
            report("a destructor has panicked", payload);
        }
    }
}

/// Drops what `values` gives, each even if the one before has panicked. The first panic goes on
/// when all is done, unless another one unwinds already: there it ends, with a line in the log.
pub(crate) fn drop_all<T>(values: impl FnMut() -> Option<T>) {
    let mut first = FirstPanic::default();
    for value in std::iter::from_fn(values) {
        first.catch(|| drop(value));
    }
    if !thread::panicking()
        && let Some(payload) = first.take()
    {
        resume_unwind(payload);
    }
}

/// A value of the user's. Dropped while a panic unwinds, it does not add its own to that.
pub(crate) struct Fenced<T>(Option<T>);

impl<T> Fenced<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Fenced(Some(value))
    }

    #[inline]
    pub(crate) fn into_inner(mut self) -> T {
        self.0.take().expect("it is taken out once")
    }
}

impl<T> Drop for Fenced<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            fenced(|| drop(value));
        }
    }
}

/// Calls `destructor`. Its panic goes on like any other, except where another one unwinds already:
/// there it ends, with a line in the log.
#[inline]
pub(crate) fn fenced(destructor: impl FnOnce()) {
    if thread::panicking() {
        contain(
            "a destructor panicked while another panic unwound",
            destructor,
        );
    } else {
        destructor();
    }
}

/// Wakes; a panic in a waker is its owner's defect and takes nothing else down.
#[inline]
pub(crate) fn wake(waker: Waker) {
    contain(WAKER_PANICKED, || waker.wake());
}

/// As [`wake`], for one that is kept.
#[inline]
pub(crate) fn wake_by_ref(waker: &Waker) {
    contain(WAKER_PANICKED, || waker.wake_by_ref());
}

const WAKER_PANICKED: &str = "a waker panicked; the others are woken all the same";

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::panic::panic_any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Panics when it is dropped, with another one of its kind, so many times.
    pub(crate) struct Chain(pub(crate) u32);

    impl Drop for Chain {
        fn drop(&mut self) {
            if self.0 > 0 {
                panic_any(Chain(self.0 - 1));
            }
        }
    }

    /// Panics with itself whenever it is dropped. Takes no memory, so that one is leaked without a
    /// trace.
    struct Endless;

    impl Drop for Endless {
        fn drop(&mut self) {
            panic_any(Endless);
        }
    }

    /// Calls a function when it is dropped.
    struct OnDrop<F: FnMut()>(F);

    impl<F: FnMut()> Drop for OnDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    /// Calls `f` by itself and in a destructor during a panic, which must be the one that arrives.
    fn also_while_unwinding(f: impl Fn()) {
        f();
        let calls = Cell::new(0);
        let unwound = catch(|| {
            let _in_destructor = OnDrop(|| {
                f();
                calls.set(calls.get() + 1);
            });
            panic_any("the first");
        });
        let payload = unwound.expect_err("it panics");
        assert_eq!(payload.downcast_ref(), Some(&"the first"));
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn payloads_that_panic_when_they_are_dropped_are_contained() {
        fn check<T: Send + 'static>(payload: impl Fn() -> T) {
            also_while_unwinding(|| {
                contain("on purpose", || panic_any(payload()));
                log(|| panic_any(payload()));
                discard(Box::new(payload()));
                drop(FirstPanic(Some(Box::new(payload()))));
            });
        }
        for length in 0..8 {
            check(|| Chain(length));
        }
        check(|| Endless);
    }

    /// A subscriber of the log that panics, after it has called a function.
    pub(crate) struct HostileLog<F>(pub(crate) F);

    impl<F: Fn() + Send + Sync + 'static> tracing::Subscriber for HostileLog<F> {
        fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
            true
        }
        fn event(&self, _: &tracing::Event<'_>) {
            (self.0)();
            panic_any(Endless);
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }

    #[test]
    fn a_log_that_panics_is_contained() {
        let events = Arc::new(AtomicUsize::new(0));
        // The first event of another test, if it comes in this moment, switches this one off.
        for _ in 0..1000 {
            let count = Arc::clone(&events);
            let log = HostileLog(move || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            tracing::subscriber::with_default(log, || {
                also_while_unwinding(|| contain("on purpose", || panic_any(1)));
            });
            if events.load(Ordering::Relaxed) > 0 {
                return;
            }
        }
        panic!("nothing was logged");
    }

    #[test]
    fn the_first_panic_is_kept_and_the_others_are_discarded() {
        also_while_unwinding(|| {
            let mut first = FirstPanic::default();
            assert_eq!(first.catch(|| 1), Some(1));
            assert!(first.catch(|| panic_any(1)).is_none());
            assert!(first.catch(|| panic_any(Endless)).is_none());
            let payload = first.take().expect("one was kept");
            assert_eq!(payload.downcast_ref(), Some(&1));
            assert!(first.take().is_none());
        });
    }

    #[test]
    fn a_fence_holds_back_the_second_panic_only() {
        let dropped = Cell::new(0);
        let bomb = || {
            OnDrop(|| {
                dropped.set(dropped.get() + 1);
                panic_any("the fenced one");
            })
        };
        let payload = catch(|| drop(Fenced::new(bomb()))).expect_err("it goes on like any other");
        assert_eq!(payload.downcast_ref(), Some(&"the fenced one"));
        let payload = catch(|| {
            let _fenced = Fenced::new(bomb());
            panic_any("the first");
        });
        let payload = payload.expect_err("it panics");
        assert_eq!(payload.downcast_ref(), Some(&"the first"));
        assert_eq!(dropped.get(), 2);
        mem::forget(Fenced::new(bomb()).into_inner());
        assert_eq!(dropped.get(), 2);
    }
}
