//! A value that is made when it is first needed, by an async function.

use std::convert::Infallible;
use std::future::Future;
use std::{cell, fmt};

use super::semaphore::Semaphore;
use crate::reactor::budget;

/// A cell that is filled once, by the first task that needs its value.
///
/// One initialiser runs at a time; the other tasks wait for it. If it fails, panics or is
/// cancelled, the cell stays empty and the next task, in the order in which they came, runs its
/// own.
///
/// An initialiser that needs the value of its own cell waits for itself forever.
///
/// # Examples
///
/// ```
/// use glommio::sync::OnceCell;
///
/// # async fn connect() -> String { "connection".into() }
/// glommio::LocalExecutor::default().run(async {
///     let connection = OnceCell::new();
///     assert_eq!(connection.get(), None);
///     assert_eq!(connection.get_or_init(connect).await, "connection");
///     assert!(connection.is_initialized());
/// });
/// ```
pub struct OnceCell<T> {
    /// Written once: that is what makes the references to its content sound.
    value: cell::OnceCell<T>,
    /// Who has its unit may initialise. Closed when there is a value.
    turn: Semaphore,
}

impl<T> OnceCell<T> {
    /// An empty cell.
    pub fn new() -> Self {
        OnceCell {
            value: cell::OnceCell::new(),
            turn: Semaphore::new(1),
        }
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Whether there is a value.
    pub fn is_initialized(&self) -> bool {
        self.get().is_some()
    }

    /// Fills an empty cell, also while an initialiser runs: its result is dropped then, and those
    /// who wait for it get this value at once.
    ///
    /// # Errors
    ///
    /// Gives `value` back if the cell is full.
    pub fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.turn.close();
        Ok(())
    }

    /// The value; makes it with `init` if there is none and no other initialiser succeeds before.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped while `init` runs, `init` is dropped and the next waiting task runs
    /// its own.
    pub async fn get_or_init<F, Fut>(&self, init: F) -> &T
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        let init = async || Ok::<T, Infallible>(init().await);
        match self.get_or_try_init(init).await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// As [`get_or_init`](Self::get_or_init), with an initialiser that may fail.
    ///
    /// # Errors
    ///
    /// That of `init`, if it was run and failed. The cell is still empty then (unless it was
    /// [`set`](Self::set) meanwhile).
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::sync::OnceCell;
    ///
    /// glommio::LocalExecutor::default().run(async {
    ///     let cell = OnceCell::new();
    ///     assert_eq!(cell.get_or_try_init(async || Err("no")).await, Err("no"));
    ///     assert_eq!(cell.get_or_try_init(async || Ok::<_, &str>(1)).await, Ok(&1));
    ///     assert_eq!(cell.set(2), Err(2), "it is full");
    /// });
    /// ```
    pub async fn get_or_try_init<F, Fut, E>(&self, init: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        budget::consume().await;
        if let Some(value) = self.get() {
            return Ok(value);
        }
        let Ok(_turn) = self.turn.acquire_permit(1).await else {
            return Ok(self.get().expect("closed when there is a value"));
        };
        // A value that was set meanwhile stays: there may be references to it.
        drop(self.set(init().await?));
        Ok(self.get().expect("set now or before"))
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        OnceCell::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnceCell")
            .field(&format_args!("{:?}", self.get()))
            .finish()
    }
}
