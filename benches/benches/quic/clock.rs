//! Time, and CPU of this process.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::Result;

/// Time and CPU since.
pub struct Clock {
    wall: Instant,
    cpu: Duration,
}

impl Clock {
    pub fn start() -> Result<Clock> {
        Ok(Clock {
            wall: Instant::now(),
            cpu: cpu()?,
        })
    }

    /// Seconds of time, and of CPU of all threads.
    pub fn stop(&self) -> Result<[f64; 2]> {
        let wall = self.wall.elapsed().as_secs_f64();
        Ok([wall, (cpu()? - self.cpu).as_secs_f64()])
    }

    /// MB per second, and seconds of CPU for a GB.
    pub fn bytes(&self, bytes: usize) -> Result<[f64; 2]> {
        let [wall, cpu] = self.stop()?;
        Ok([bytes as f64 / wall / 1e6, cpu / (bytes as f64 / 1e9)])
    }

    /// How many per second, and CPU for each, of which `unit` is in a second.
    pub fn each(&self, count: usize, unit: f64) -> Result<[f64; 2]> {
        let [wall, cpu] = self.stop()?;
        Ok([count as f64 / wall, cpu / count as f64 * unit])
    }
}

fn cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}
