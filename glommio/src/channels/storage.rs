//! Where a channel keeps its state: with one executor, or for any thread.
//!
//! [`oneshot`](super::oneshot), [`watch`](super::watch) and [`broadcast`](super::broadcast) have
//! two forms of the same types, told apart by their last parameter: [`Local`], the default, and
//! [`Shared`]. Programs rarely name these, since the aliases `SharedSender` and `SharedReceiver`
//! do.
//!
//! ```
//! use glommio::channels::{oneshot, storage::Storage};
//!
//! /// Answers over either form.
//! fn answer<S: Storage>(reply: oneshot::Sender<u32, S>) {
//!     reply.send(7).expect("the receiver is there");
//! }
//!
//! let (sender, local) = oneshot::oneshot();
//! answer(sender);
//! let (sender, shared) = oneshot::shared();
//! answer(sender);
//! # drop((local, shared));
//! ```

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::PoisonError;

use crate::loom::sync::{Arc, Mutex};

/// A form of a channel. It cannot be implemented outside of this crate.
pub trait Storage: sealed::Storage {}

/// The form for tasks of one executor. It uses no atomics, and is neither `Send` nor `Sync`.
#[derive(Debug)]
pub enum Local {}

/// The form for any thread. It is a mutex, and `Send` and `Sync` if the values are `Send`.
#[derive(Debug)]
pub enum Shared {}

impl Storage for Local {}
impl Storage for Shared {}

/// Public as the traits of a public bound must be, and out of reach.
pub(super) mod sealed {
    use std::cell::{Ref, RefCell};

    use crate::loom::sync::Mutex;

    /// See [`Storage`](super::Storage).
    pub trait Storage {
        /// A counted reference to the state `C` of a channel, and to a value `V` that can be lent
        /// beside it.
        type Handle<C, V>: Handle<C, V>;
        /// An item that several receivers take.
        type Item<T>;

        fn item<T>(value: T) -> Self::Item<T>;
        /// One more of it, made while the state is borrowed: user code runs only in the shared
        /// form, which has no other way if values need not be `Sync`.
        fn another<T: Clone>(item: &Self::Item<T>) -> Self::Item<T>;
        /// The value of one that was made by `another`, with nothing borrowed.
        fn value<T: Clone>(item: Self::Item<T>) -> T;
    }

    /// Inside `lend` of the local form the other methods may be called, but for `with_both`.
    /// Everything else must not come back in.
    pub trait Handle<C, V>: Clone {
        fn new(state: C, value: V) -> Self;
        /// Borrows the state.
        fn with<R>(&self, f: impl FnOnce(&mut C) -> R) -> R;
        /// Lends the value to `f`, as it is when `look` sees the state.
        fn lend<R>(&self, look: impl FnOnce(&mut C), f: impl FnOnce(&V) -> R) -> R;
        /// Borrows both. Panics in the local form while the value is lent.
        fn with_both<R>(&self, f: impl FnOnce(&mut C, &mut V) -> R) -> R;
    }

    /// The state and the value apart, so that one can be used while the other is lent.
    #[derive(Debug)]
    pub struct LocalCell<C, V> {
        pub(super) state: RefCell<C>,
        pub(super) value: RefCell<V>,
    }

    impl<C, V> LocalCell<C, V> {
        /// Lends the value.
        pub fn borrow(&self) -> Ref<'_, V> {
            self.value.borrow()
        }
    }

    /// State and value under one lock. A panic under it comes from a value's `Clone` or a user's
    /// closure, both of which see the value only; the state is whole, so poisoning says
    /// nothing.
    #[derive(Debug)]
    pub struct SharedCell<C, V>(pub(super) Mutex<(C, V)>);
}

use sealed::{LocalCell, SharedCell};

impl sealed::Storage for Local {
    type Handle<C, V> = Rc<LocalCell<C, V>>;
    type Item<T> = Rc<T>;

    fn item<T>(value: T) -> Rc<T> {
        Rc::new(value)
    }

    fn another<T: Clone>(item: &Rc<T>) -> Rc<T> {
        Rc::clone(item)
    }

    fn value<T: Clone>(item: Rc<T>) -> T {
        Rc::unwrap_or_clone(item)
    }
}

impl sealed::Storage for Shared {
    type Handle<C, V> = Arc<SharedCell<C, V>>;
    type Item<T> = T;

    fn item<T>(value: T) -> T {
        value
    }

    fn another<T: Clone>(item: &T) -> T {
        item.clone()
    }

    fn value<T: Clone>(item: T) -> T {
        item
    }
}

impl<C, V> sealed::Handle<C, V> for Rc<LocalCell<C, V>> {
    fn new(state: C, value: V) -> Self {
        Rc::new(LocalCell {
            state: RefCell::new(state),
            value: RefCell::new(value),
        })
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut C) -> R) -> R {
        f(&mut self.state.borrow_mut())
    }

    #[inline]
    fn lend<R>(&self, look: impl FnOnce(&mut C), f: impl FnOnce(&V) -> R) -> R {
        look(&mut self.state.borrow_mut());
        f(&self.value.borrow())
    }

    #[inline]
    fn with_both<R>(&self, f: impl FnOnce(&mut C, &mut V) -> R) -> R {
        let value = self.value.try_borrow_mut();
        let mut value = value.expect("the value is not replaced while it is lent");
        f(&mut self.state.borrow_mut(), &mut value)
    }
}

impl<C, V> SharedCell<C, V> {
    #[inline]
    fn lock<R>(&self, f: impl FnOnce(&mut (C, V)) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<C, V> sealed::Handle<C, V> for Arc<SharedCell<C, V>> {
    fn new(state: C, value: V) -> Self {
        Arc::new(SharedCell(Mutex::new((state, value))))
    }

    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut C) -> R) -> R {
        self.lock(|both| f(&mut both.0))
    }

    #[inline]
    fn lend<R>(&self, look: impl FnOnce(&mut C), f: impl FnOnce(&V) -> R) -> R {
        self.lock(|(state, value)| {
            look(state);
            f(value)
        })
    }

    #[inline]
    fn with_both<R>(&self, f: impl FnOnce(&mut C, &mut V) -> R) -> R {
        self.lock(|(state, value)| f(state, value))
    }
}
