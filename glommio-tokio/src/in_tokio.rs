//! A value that is dropped in the context of a tokio runtime.

use std::ops::{Deref, DerefMut};

use crate::Tokio;

/// A value that is dropped in the context of a tokio runtime, wherever that happens: what
/// [`Tokio::keep`] returns.
///
/// Destructors of values that tokio's crates give out may spawn, and panic outside of a context ("there
/// is no reactor running", "this functionality requires a Tokio context"): those of transactions and
/// pooled connections of sqlx, which go back to their pool by a task. A function that gets one and
/// returns early by `?` drops it wherever the function is polled.
///
/// It is a user of the runtime, which lives at least as long.
///
/// # Examples
///
/// ```
/// use glommio::LocalExecutor;
/// use glommio_tokio::Tokio;
///
/// /// Its destructor spawns.
/// struct Connection {
///     queries: usize,
/// }
///
/// impl Drop for Connection {
///     fn drop(&mut self) {
///         tokio::spawn(async { /* goes back to its pool */ });
///     }
/// }
///
/// LocalExecutor::default().run(async {
///     let tokio = Tokio::start()?;
///     let connection = tokio.with(async { Connection { queries: 0 } }).await;
///     let mut connection = tokio.keep(connection);
///     connection.queries += 1;
///     drop(connection); // in the context
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct InTokio<T> {
    value: Option<T>,
    tokio: Tokio,
}

impl<T> InTokio<T> {
    pub(crate) fn new(tokio: Tokio, value: T) -> Self {
        InTokio {
            value: Some(value),
            tokio,
        }
    }

    /// The value, which is dropped where its new owner drops it: for a method that consumes it, inside of
    /// [`Tokio::with`].
    pub fn into_inner(mut self) -> T {
        self.value.take().expect(TAKEN)
    }
}

impl<T> Deref for InTokio<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect(TAKEN)
    }
}

impl<T> DerefMut for InTokio<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect(TAKEN)
    }
}

impl<T> Drop for InTokio<T> {
    fn drop(&mut self) {
        let _entered = self.tokio.enter_to_drop();
        self.value = None;
    }
}

const TAKEN: &str = "it is taken by `into_inner` and the drop only";
