//! Values that belong to a task, visible to all code that it calls.

#![forbid(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::{fmt, thread};

use pin_project_lite::pin_project;

/// A value of the task, declared with [`task_local!`](crate::task_local).
///
/// It is set for the time that a future runs, by [`scope`](Self::scope), and visible only while
/// that future is being polled: to no other task of the executor, and not to tasks that the future
/// spawns.
///
/// # Examples
///
/// ```
/// use glommio::{executor, spawn_local, task_local};
///
/// task_local! {
///     static REQUEST: u32;
/// }
///
/// fn log(text: &str) -> String {
///     REQUEST.with(|id| format!("request {id}: {text}"))
/// }
///
/// glommio::LocalExecutor::default().run(async {
///     let handle = |id| {
///         spawn_local(REQUEST.scope(id, async {
///             executor().yield_now().await;
///             log("done")
///         }))
///     };
///     let (first, second) = (handle(1), handle(2));
///     assert_eq!(first.await, "request 1: done");
///     assert_eq!(second.await, "request 2: done");
///     assert!(REQUEST.try_with(|_| ()).is_err());
/// });
/// ```
pub struct LocalKey<T: 'static> {
    slot: thread::LocalKey<Slot<T>>,
}

/// Where the value is while the future is being polled. Public for the macro alone.
#[doc(hidden)]
pub type Slot<T> = RefCell<Option<Bound<T>>>;

#[doc(hidden)]
pub struct Bound<T> {
    value: Rc<T>,
    /// The nesting of tasks in which it was set.
    depth: u32,
}

thread_local! {
    /// How many tasks on the stack of this thread are being polled inside each other. A task that is polled within the
    /// call that spawns it does not see the values of the one that calls.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Until this is dropped, what runs is not the task that ran before.
pub(crate) struct OtherTask {
    before: u32,
}

impl OtherTask {
    #[inline]
    pub(crate) fn begin() -> Self {
        let before = DEPTH.get();
        DEPTH.set(before.wrapping_add(1));
        OtherTask { before }
    }
}

impl Drop for OtherTask {
    #[inline]
    fn drop(&mut self) {
        DEPTH.set(self.before);
    }
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn __new(slot: thread::LocalKey<Slot<T>>) -> Self {
        LocalKey { slot }
    }

    /// Runs `future` with the value set to `value`.
    ///
    /// Scopes of one key nest: the innermost counts, and at its end the one around it does again. A
    /// panic ends a scope as its end does.
    ///
    /// # Cancel safety
    ///
    /// As `future`. The value is dropped with the returned future, after `future`.
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> TaskLocalFuture<T, F> {
        TaskLocalFuture {
            future,
            key: self,
            value: Rc::new(value),
        }
    }

    /// Calls `f` with the value.
    ///
    /// # Panics
    ///
    /// Panics if the value is not set.
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.get() {
            Ok(value) => f(&value),
            Err(error) => panic!("{error}"),
        }
    }

    /// Calls `f` with the value.
    ///
    /// # Errors
    ///
    /// [`AccessError`] if the value is not set.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        self.get().map(|value| f(&value))
    }

    /// Counted, so that the slot is not borrowed while user code looks at the value.
    fn get(&'static self) -> Result<Rc<T>, AccessError> {
        let value = self.slot.try_with(|slot| {
            let slot = slot.borrow();
            let visible = slot.as_ref().filter(|it| it.depth == DEPTH.get());
            visible.map(|it| Rc::clone(&it.value))
        });
        value.ok().flatten().ok_or(AccessError)
    }

    /// Sets the value until what is returned is dropped.
    fn enter(&'static self, value: Rc<T>) -> Entered<T> {
        let depth = DEPTH.get();
        Entered {
            key: self,
            before: self.replace(Some(Bound { value, depth })),
        }
    }

    /// Does nothing while the locals of the thread are being destroyed.
    fn replace(&'static self, bound: Option<Bound<T>>) -> Option<Bound<T>> {
        let before = self.slot.try_with(|slot| slot.replace(bound));
        before.ok().flatten()
    }
}

impl_debug! { [T: 'static] LocalKey[T], _it: ; .. }

struct Entered<T: 'static> {
    key: &'static LocalKey<T>,
    before: Option<Bound<T>>,
}

impl<T: 'static> Drop for Entered<T> {
    fn drop(&mut self) {
        // Not the last reference to the value, which the future has.
        drop(self.key.replace(self.before.take()));
    }
}

pin_project! {
    /// See [`LocalKey::scope`].
    #[must_use = "futures do nothing unless polled"]
    pub struct TaskLocalFuture<T: 'static, F> {
        #[pin]
        future: F,
        key: &'static LocalKey<T>,
        value: Rc<T>,
    }
}

impl<T: 'static, F: Future> Future for TaskLocalFuture<T, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = this.key.enter(Rc::clone(this.value));
        this.future.poll(cx)
    }
}

impl_debug! { [T: fmt::Debug + 'static, F] TaskLocalFuture[T, F], it: value; .. }

/// The value of a [`LocalKey`] is not set: the code runs outside its [`scope`](LocalKey::scope).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the task-local value is not set here: it is set inside `LocalKey::scope`")
    }
}

impl std::error::Error for AccessError {}
