//! The macros of the crate root, and what they expand to.

#![forbid(unsafe_code)]

pub mod buggify;
#[cfg(feature = "macros")]
mod join;
#[cfg(feature = "macros")]
mod maybe_done;
#[cfg(all(feature = "macros", feature = "simulation"))]
mod simulated;
#[cfg(feature = "macros")]
pub mod support;
mod task_local;

/// Runs an `async fn main` in an executor on the main thread.
///
/// The executor is a [`LocalExecutor`](crate::LocalExecutor). The return type stays as it is,
/// so `Result` works. The function is `async`, without arguments and generics.
///
/// | argument | meaning | default |
/// |---|---|---|
/// | `placement = Unbound`, `Fixed(cpu)` or `Fenced(set)` | a variant of [`Placement`](crate::Placement) | `Unbound` |
/// | `crate = path::to::glommio` | how the crate is called, if it was renamed or is re-exported | `::glommio` |
///
/// # Panics
///
/// The function panics if the executor cannot be built.
///
/// # Examples
///
/// ```
/// use glommio::{GlommioError, timer::sleep};
/// use std::time::Duration;
///
/// #[glommio::main]
/// async fn main() -> Result<(), GlommioError<()>> {
///     sleep(Duration::from_millis(1)).await;
///     Ok(())
/// }
/// ```
///
/// ```no_run
/// #[glommio::main(placement = Fixed(0))]
/// async fn main() {
///     glommio::executor().yield_now().await;
/// }
/// ```
#[cfg(feature = "macros")]
pub use glommio_macros::main;
/// Races futures in the caller's task, and runs the body of the first that is done.
///
/// ```text
/// select! {
///     crate = ::facade::glommio;    // if the crate was renamed, or is re-exported
///     biased;                       // see below
///     pattern = future => body,
///     ...
/// }
/// ```
///
/// The value is that of the body that runs. A comma behind a body is needed as in a `match`:
/// not behind a block. Patterns match every output; there are no guards and no `else`. What
/// comes behind `=` is a future, or can be made one as `.await` does; it need not be `Unpin`
/// nor fused.
///
/// All futures, that which is done included, have been dropped when the body runs, which can
/// use what they borrowed. To go on with a future later, race a reference to it: `&mut
/// future`.
///
/// Bodies and futures stand in the function that uses the macro: `.await`, `?`, `break` and
/// `return` work.
///
/// # Order
///
/// Which of several futures that are ready at the same time wins changes from one use to the
/// next, so that one that is always ready does not keep the others from their turn. With
/// `biased` they are polled in the order in which they are written, and the first one wins.
///
/// # Cancel safety
///
/// Futures that lose are dropped where they are suspended. Whether something is lost with them
/// is said under this title in their documentation.
///
/// # Examples
///
/// ```
/// use glommio::{channels::local_channel, select, timer::sleep};
/// use std::time::Duration;
///
/// glommio::LocalExecutor::default().run(async {
///     let (sender, receiver) = local_channel::new_bounded(4);
///     sender.send(1).await?;
///     sender.send(2).await?;
///     drop(sender);
///     let mut sum = 0;
///     let mut deadline = std::pin::pin!(sleep(Duration::from_secs(60)));
///     loop {
///         select! {
///             biased;
///             item = receiver.recv() => match item {
///                 Some(item) => sum += item,
///                 None => break,
///             }
///             _ = &mut deadline => panic!("it took a minute"),
///         }
///     }
///     assert_eq!(sum, 3);
///     Ok::<_, glommio::GlommioError<i32>>(())
/// })?;
/// # Ok::<_, glommio::GlommioError<i32>>(())
/// ```
#[cfg(feature = "macros")]
pub use glommio_macros::select;
/// Runs an `async fn` as a test, in an executor of its own on the test's thread.
///
/// It becomes an ordinary `#[test]`: `#[ignore]`, `#[should_panic]` and a `Result` as return
/// type work. It takes the arguments of [`main`](macro@crate::main), and with the feature
/// `simulation` two more:
///
/// | argument | meaning |
/// |---|---|
/// | `start_paused = true` | the clock of the executor is [paused](crate::time#paused-clocks) from the start |
/// | `simulated` | the test is the only client of a simulation (`glommio::simulation`) with a random seed, or that of `GLOMMIO_SEED`; goes with no other argument than `crate` |
///
/// A glob import of the crate, `use glommio::*`, replaces the `#[test]` of the standard
/// library by this one. Name what you import, or import the [`prelude`](crate::prelude), where
/// programs written for 0.9 meet that: the feature `macros` is off by default.
///
/// # Panics
///
/// The test panics if the executor cannot be built. With `simulated` it panics if the simulation fails,
/// with its seed.
///
/// # Examples
///
/// ```
/// #[glommio::test]
/// async fn tasks_give_their_outputs() {
///     assert_eq!(glommio::spawn_local(async { 1 + 1 }).await, 2);
/// }
///
/// #[glommio::test]
/// #[should_panic(expected = "overdue")]
/// async fn panics_are_expected() {
///     panic!("overdue");
/// }
/// ```
#[cfg(feature = "macros")]
pub use glommio_macros::test;
