//! What one executor has bound and others wait for.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use glommio::timer::sleep;

use crate::clock;

/// Addresses, once there are any.
#[derive(Debug)]
pub(crate) struct Bound<T>(Arc<OnceLock<T>>);

impl<T: Clone> Bound<T> {
    /// Tells them, once.
    pub(crate) fn tell(&self, addresses: T) {
        // The first word holds.
        let _ = self.0.set(addresses);
    }

    /// Waits for them.
    ///
    /// # Errors
    ///
    /// `TimedOut` if they do not come for long.
    pub(crate) async fn wait(&self) -> io::Result<T> {
        let asked = clock::now();
        loop {
            match self.0.get() {
                Some(addresses) => return Ok(addresses.clone()),
                None if clock::since(asked) > PATIENCE => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                None => sleep(LOOK_EVERY).await,
            }
        }
    }
}

impl<T> Default for Bound<T> {
    fn default() -> Self {
        Bound(Arc::default())
    }
}

impl<T> Clone for Bound<T> {
    fn clone(&self) -> Self {
        Bound(Arc::clone(&self.0))
    }
}

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(1);
