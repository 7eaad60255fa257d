//! Tasks that wait for something to change, all of which are woken when it does.
//!
//! Wakers are user code: they are cloned, woken and dropped with nothing borrowed, and a panic of
//! one of them goes no further than the log.

use crate::panics::{caught, log_error};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, Waker};

/// The tasks that wait for one thing.
#[derive(Default)]
pub(crate) struct WaiterList {
    wakers: RefCell<Slab<Waker>>,
    /// How often all were woken. Keys of before name nothing.
    wakes: Cell<u64>,
}

impl WaiterList {
    /// Waits until `ready` gives something. It is asked anew whenever the tasks of the list are
    /// woken.
    pub(crate) async fn wait_until<T>(&self, mut ready: impl FnMut() -> Option<T>) -> T {
        let mut waiter = Waiter {
            list: self,
            place: None,
        };
        poll_fn(|cx| match ready() {
            Some(value) => Poll::Ready(value),
            None => {
                waiter.register(cx.waker());
                Poll::Pending
            }
        })
        .await
    }

    /// As [`wait_until`](Self::wait_until), in one poll. A task that does not poll again stays
    /// listed until all are woken.
    pub(crate) fn poll_until<T>(
        &self,
        cx: &Context<'_>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Poll<T> {
        if let Some(value) = ready() {
            return Poll::Ready(value);
        }
        let listed = |(_, waker): (usize, &Waker)| waker.will_wake(cx.waker());
        if !self.wakers.borrow().iter().any(listed) {
            let waker = cx.waker().clone();
            self.wakers.borrow_mut().insert(waker);
        }
        Poll::Pending
    }

    /// Wakes all tasks. Call it with nothing borrowed.
    pub(crate) fn wake_all(&self) {
        if self.wakers.borrow().is_empty() {
            return;
        }
        self.wakes.set(self.wakes.get() + 1);
        let wakers = mem::take(&mut *self.wakers.borrow_mut());
        for (_, waker) in wakers {
            wake(waker);
        }
    }
}

/// A place in a list, left when it is dropped.
struct Waiter<'a> {
    list: &'a WaiterList,
    place: Option<Place>,
}

struct Place {
    key: usize,
    wakes: u64,
}

impl Waiter<'_> {
    fn register(&mut self, waker: &Waker) {
        let waker = waker.clone();
        let left = self.leave();
        self.place = Some(Place {
            key: self.list.wakers.borrow_mut().insert(waker),
            wakes: self.list.wakes.get(),
        });
        drop(left);
    }

    fn leave(&mut self) -> Option<Waker> {
        let place = self.place.take()?;
        let is_listed = place.wakes == self.list.wakes.get();
        is_listed.then(|| self.list.wakers.borrow_mut().remove(place.key))
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let left = self.leave();
        drop(left);
    }
}

/// Wakes a task. A panic of the waker ends here.
pub(crate) fn wake(waker: Waker) {
    if caught(|| waker.wake()).is_none() {
        log_error("the waker of a task has panicked");
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    /// Counts wakes.
    #[derive(Default)]
    pub(crate) struct Counting(pub(crate) AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    struct Panicking;

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics");
        }
    }

    #[test]
    fn all_are_woken_and_a_dropped_one_leaves_nothing() {
        let (list, go) = (WaiterList::default(), Cell::new(false));
        let counting = Arc::new(Counting::default());
        let panicking = Waker::from(Arc::new(Panicking));
        let waker = Waker::from(Arc::clone(&counting));
        let mut cx = Context::from_waker(&waker);

        let wait = || list.wait_until(|| go.get().then_some(7));
        let (mut one, mut two) = (pin!(wait()), pin!(wait()));
        let mut loud = pin!(wait());
        assert!(
            loud.as_mut()
                .poll(&mut Context::from_waker(&panicking))
                .is_pending()
        );
        assert!(one.as_mut().poll(&mut cx).is_pending());
        assert!(one.as_mut().poll(&mut cx).is_pending());
        assert!(two.as_mut().poll(&mut cx).is_pending());
        for _ in 0..100 {
            assert!(pin!(wait()).poll(&mut cx).is_pending());
        }
        assert_eq!(list.wakers.borrow().len(), 3);

        for _ in 0..2 {
            assert!(list.poll_until(&cx, || go.get().then_some(7)).is_pending());
        }
        assert_eq!(list.wakers.borrow().len(), 3, "the task is listed");

        list.wake_all();
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
        assert!(
            one.as_mut().poll(&mut cx).is_pending(),
            "there is nothing yet"
        );
        go.set(true);
        list.wake_all();
        assert_eq!(counting.0.load(Ordering::Relaxed), 3);
        assert_eq!(one.as_mut().poll(&mut cx), Poll::Ready(7));
        assert_eq!(two.as_mut().poll(&mut cx), Poll::Ready(7));
    }
}
