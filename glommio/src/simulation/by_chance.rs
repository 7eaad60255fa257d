//! Which faults happen by chance.

use std::ops::Range;
use std::time::Duration;

use super::builder::SimulationBuilder;
#[cfg(doc)]
use super::fault::Fault;
use super::recurring::{Recurring, What};
#[cfg(doc)]
use super::{Disk, Network};

impl SimulationBuilder {
    /// Cuts the power of a node again and again: each time after it has run for a span out of `every`, for a
    /// span out of `off_for`, both by chance.
    ///
    /// Most cuts come while an operation is in flight that writes or syncs a file, or right after a
    /// sync, a rename, or data that the node has sent: where a program that is not prepared loses data.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// Simulation::builder()
    ///     .node("server", 2, || async { sleep(3600 * SECOND).await })
    ///     .node("replica", 1, || async { sleep(3600 * SECOND).await })
    ///     .restarts("server", 10 * SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///     .kills("replica", 10 * SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///     .stops("replica", 10 * SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///     .pauses("server", 10 * SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///     .partitions(30 * SECOND..90 * SECOND, SECOND..5 * SECOND)
    ///     .run_for(600 * SECOND)?;
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn restarts(
        self,
        node: impl Into<String>,
        every: Range<Duration>,
        off_for: Range<Duration>,
    ) -> Self {
        self.recurring(What::PowerCut, Some(node.into()), every, off_for)
    }

    /// Has the processes of a node be [killed](Fault::Kill) again and again, while its kernel goes on: otherwise as
    /// [`restarts`](Self::restarts).
    pub fn kills(
        self,
        node: impl Into<String>,
        every: Range<Duration>,
        off_for: Range<Duration>,
    ) -> Self {
        self.recurring(What::Kill, Some(node.into()), every, off_for)
    }

    /// Has the processes of a node be [stopped](Fault::Stop) again and again, while its kernel goes on: otherwise as
    /// [`pauses`](Self::pauses).
    pub fn stops(
        self,
        node: impl Into<String>,
        every: Range<Duration>,
        length: Range<Duration>,
    ) -> Self {
        self.recurring(What::Stop, Some(node.into()), every, length)
    }

    /// Has a node [stand still](Fault::Pause) again and again: each time after it has run for a span out of
    /// `every`, for a span out of `length`, both by chance. The moments are those of
    /// [`restarts`](Self::restarts).
    pub fn pauses(
        self,
        node: impl Into<String>,
        every: Range<Duration>,
        length: Range<Duration>,
    ) -> Self {
        self.recurring(What::Pause, Some(node.into()), every, length)
    }

    /// Has the network fall into two groups of nodes again and again, in which packets do not pass from one to the
    /// other: each time after it has been whole for a span out of `every`, for a span out of `length`. Chance
    /// says which nodes are in which group. Most partitions come right after a node has sent something, which
    /// then does not arrive.
    pub fn partitions(self, every: Range<Duration>, length: Range<Duration>) -> Self {
        self.recurring(What::Partition, None, every, length)
    }

    /// Whether each seed leaves out some of the kinds of faults: each of what happens again and again, and of
    /// what the [network](Network) and the [disks](Disk) do wrong, with a probability of one half. Default false.
    ///
    /// A defect may need one kind of fault often, and be hidden by another one: nothing that takes a minute is
    /// ever done by nodes that lose their power each second. Over many seeds, different ones left out find more
    /// (Groce et al., *Swarm Testing*, ISSTA 2012). Faults of the [plan](Self::at) stay, and what disks lose in
    /// a power cut.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::{simulation::Simulation, timer::sleep};
    /// use std::time::Duration;
    ///
    /// const SECOND: Duration = Duration::from_secs(1);
    /// for seed in 0..20 {
    ///     Simulation::builder()
    ///         .seed(seed)
    ///         .swarm(true)
    ///         .network(|network| network.loss(0.1).duplicate(0.1))
    ///         .node("server", 1, || async { sleep(3600 * SECOND).await })
    ///         .restarts("server", SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///         .pauses("server", SECOND..60 * SECOND, SECOND..5 * SECOND)
    ///         .run_for(60 * SECOND)?;
    /// }
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn swarm(mut self, swarm: bool) -> Self {
        self.spec.swarm = swarm;
        self
    }

    fn recurring(
        mut self,
        what: What,
        node: Option<String>,
        every: Range<Duration>,
        length: Range<Duration>,
    ) -> Self {
        self.spec.recurring.push(Recurring {
            what,
            node,
            every,
            length,
        });
        self
    }
}
