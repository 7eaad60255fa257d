//! What code of nodes may ask of the simulation that it runs in.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use super::fault::Fault;
use super::injected;
use crate::simulated::{self, Event};

/// The simulated time since the start of the simulation on this thread.
///
/// # Panics
///
/// Panics outside of a simulation.
///
/// # Examples
///
/// ```
/// use glommio::{simulation::{self, Simulation}, timer::sleep};
/// use std::time::Duration;
///
/// Simulation::builder()
///     .client("client", || async {
///         sleep(Duration::from_secs(60)).await;
///         assert_eq!(simulation::elapsed(), Duration::from_secs(60));
///     })
///     .run()?;
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
pub fn elapsed() -> Duration {
    expect().now()
}

/// How often the node whose code runs has started: 1 until its power is [cut](Fault::PowerCut) or it is
/// [killed](Fault::Kill) for the first time. Its shards have the [ids](crate::ExecutorProxy::id) 1, 2 and so
/// on, each time it starts.
///
/// # Panics
///
/// Panics outside of a simulation, and where no code of a node runs, as in an
/// [invariant](super::SimulationBuilder::invariant).
///
/// # Examples
///
/// ```
/// use glommio::{executor, simulation::{self, Fault, Simulation}, timer::sleep};
/// use std::time::Duration;
///
/// const SECOND: Duration = Duration::from_secs(1);
/// let main = || async {
///     simulation::note(format_args!("shard {}, start {}", executor().id() - 1, simulation::starts()));
///     if simulation::starts() == 1 {
///         simulation::inject(SECOND, Fault::PowerCut { node: "server".into(), off_for: SECOND });
///     }
/// };
/// Simulation::builder().node("server", 2, main).run_for(5 * SECOND)?;
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
pub fn starts() -> u64 {
    let world = expect();
    let node = world.here().expect("code of a node calls it");
    world.starts(node)
}

/// Adds a line to the events of the simulation, which a [`Failure`](super::Failure) shows and the
/// [digest](super::Report::digest) covers. Does nothing outside of a simulation.
///
/// # Examples
///
/// ```
/// use glommio::simulation::{self, Simulation};
///
/// let failure = Simulation::builder()
///     .client("client", || async {
///         simulation::note("about to fail");
///         Err::<(), _>("as planned")
///     })
///     .run()
///     .unwrap_err();
/// assert!(failure.to_string().contains("about to fail"));
/// ```
pub fn note(text: impl fmt::Display) {
    if let Some(world) = simulated::current() {
        let text = text.to_string();
        world.note(Event::Note { text });
    }
}

/// Has a fault happen after `delay` of simulated time.
///
/// # Panics
///
/// Panics outside of a simulation. A fault that names a node which there is not ends the
/// simulation with a [`Failure`](super::Failure).
///
/// # Examples
///
/// ```
/// use glommio::{simulation::{self, Fault, Simulation}, timer::sleep};
/// use std::{cell::Cell, rc::Rc, time::Duration};
///
/// let starts = Rc::new(Cell::new(0));
/// let count = Rc::clone(&starts);
/// Simulation::builder()
///     .node("server", 1, move || {
///         count.set(count.get() + 1);
///         std::future::pending::<()>()
///     })
///     .client("client", || async {
///         simulation::inject(Duration::ZERO, Fault::PowerCut { node: "server".into(), off_for: Duration::from_secs(1) });
///         sleep(Duration::from_secs(2)).await;
///     })
///     .run()?;
/// assert_eq!(starts.get(), 2);
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
pub fn inject(delay: Duration, fault: Fault) {
    let _running = expect();
    injected::add(delay, fault);
}

fn expect() -> Rc<simulated::World> {
    simulated::current().expect("no simulation runs on this thread")
}
