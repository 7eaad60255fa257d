//! What the network between nodes is like.

use std::ops::Range;
use std::time::Duration;

use fastrand::Rng;

use simulated_kernel::network::Link;

/// What the network between nodes is like, or one direction of one link; see
/// [`SimulationBuilder::network`](super::SimulationBuilder::network).
///
/// By default a packet takes 100 µs and none is lost. Packets of a node to itself arrive at once, and
/// are never lost.
///
/// Loss, duplicates and another order show in datagrams as they are; in TCP they show as time, since it
/// sends again what was lost.
///
/// All methods return the changed settings.
///
/// # Examples
///
/// ```
/// use glommio::simulation::Simulation;
/// use std::time::Duration;
///
/// const MILLISECOND: Duration = Duration::from_millis(1);
/// Simulation::builder()
///     .network(|network| {
///         network
///             .latency(MILLISECOND..50 * MILLISECOND)
///             .loss(0.01)
///             .duplicate(0.001)
///             .reorder(0.01)
///             .bandwidth(10 << 20)
///             .mtu(1280)
///     })
///     .client("client", || async { /* talks to others */ })
///     .run()?;
/// # Ok::<_, glommio::simulation::Failure>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "it is returned to the builder"]
pub struct Network(Link);

impl Default for Network {
    fn default() -> Self {
        Network(Link {
            split: 1.0 / 16.0,
            ..Link::default()
        })
    }
}

impl Network {
    /// How long a packet takes: a time out of the range, all as likely. Default 100 µs.
    pub fn latency(mut self, latency: Range<Duration>) -> Self {
        self.0.latency = latency;
        self
    }

    /// The probability that a packet is lost. Default 0.
    pub fn loss(mut self, probability: f64) -> Self {
        self.0.loss = probability;
        self
    }

    /// The probability that a packet arrives twice. Default 0.
    pub fn duplicate(mut self, probability: f64) -> Self {
        self.0.duplicate = probability;
        self
    }

    /// The probability that a packet takes longer, so that later ones overtake it. Default 0.
    pub fn reorder(mut self, probability: f64) -> Self {
        self.0.reorder = probability;
        self
    }

    /// The probability that a write to a stream takes a part of the data only, and that a segment of TCP comes apart on
    /// its way, so that its reader gets a part first. Default 1/16.
    ///
    /// # Examples
    ///
    /// ```
    /// use glommio::simulation::Simulation;
    ///
    /// // Most messages come in parts.
    /// Simulation::builder()
    ///     .network(|network| network.split(0.9))
    ///     .client("client", || async { /* talks to others */ })
    ///     .run()?;
    /// # Ok::<_, glommio::simulation::Failure>(())
    /// ```
    pub fn split(mut self, probability: f64) -> Self {
        self.0.split = probability;
        self
    }

    /// How many bytes pass in a second; up to a MiB waits, and what is more is lost. A rate of zero counts as
    /// one byte. Default: any number.
    pub fn bandwidth(mut self, bytes_per_second: u64) -> Self {
        self.0.bandwidth = Some(bytes_per_second);
        self
    }

    /// The largest packet, in bytes; less than 576 counts as 576. Default 1500.
    pub fn mtu(mut self, bytes: u32) -> Self {
        self.0.mtu = bytes;
        self
    }

    pub(super) fn link(&self) -> Link {
        self.0.clone()
    }

    fn rates(&mut self) -> [&mut f64; 4] {
        let it = &mut self.0;
        [
            &mut it.loss,
            &mut it.duplicate,
            &mut it.reorder,
            &mut it.split,
        ]
    }

    /// Without all of what goes wrong.
    pub(super) fn calm(mut self) -> Self {
        self.rates().into_iter().for_each(|rate| *rate = 0.0);
        self
    }

    /// Without some of what goes wrong, as chance has it.
    pub(super) fn with_less(mut self, rng: &mut Rng) -> Self {
        for rate in self.rates() {
            *rate = if rng.bool() { *rate } else { 0.0 };
        }
        self.0.bandwidth = self.0.bandwidth.filter(|_| rng.bool());
        self
    }

    /// What is wrong with it.
    pub(super) fn check(&self) -> Result<(), String> {
        for rate in [self.0.loss, self.0.duplicate, self.0.reorder, self.0.split] {
            if !(0.0..=1.0).contains(&rate) {
                return Err(format!("a probability is from 0 to 1, not {rate}"));
            }
        }
        let range = &self.0.latency;
        match range.start > range.end {
            true => Err(format!(
                "the range of latencies {range:?} ends before it begins"
            )),
            false => Ok(()),
        }
    }
}
