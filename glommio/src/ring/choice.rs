//! Which ring an executor gets.

use std::sync::OnceLock;
use std::{fmt, io};

use crate::error::GlommioError;

/// How an executor waits for sockets, files and time.
///
/// The environment variable `GLOMMIO_DRIVER`, if it is `io_uring` or `epoll`, takes precedence
/// over the builder; `auto` leaves it to the builder. `docs/guide/drivers.md` compares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Driver {
    /// io_uring if the kernel has it and this thread may use it, otherwise epoll. Which one it is, is
    /// decided when the executor is made, by using a ring; the first executor of a process that falls
    /// back logs the reason, at the level `warn`. A ring that cannot be made for want of memory or
    /// descriptors is an error.
    #[default]
    Auto,
    /// io_uring. Making the executor fails where it is missing or forbidden.
    IoUring,
    /// epoll, and threads for files.
    Epoll,
}

impl Driver {
    /// The one of the environment, or else this one.
    pub(super) fn or_of_environment(self) -> Driver {
        static OF_ENVIRONMENT: OnceLock<Option<Driver>> = OnceLock::new();
        let of_environment = OF_ENVIRONMENT.get_or_init(|| {
            let name = std::env::var("GLOMMIO_DRIVER").ok()?;
            let driver = Driver::named(&name);
            if driver.is_none() {
                tracing::warn!("GLOMMIO_DRIVER={name}: not one of auto, io_uring, epoll; ignored");
            }
            driver
        });
        of_environment
            .filter(|it| *it != Driver::Auto)
            .unwrap_or(self)
    }

    fn named(name: &str) -> Option<Driver> {
        let mut all = [Driver::Auto, Driver::IoUring, Driver::Epoll].into_iter();
        all.find(|it| it.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Driver::Auto => "auto",
            Driver::IoUring => "io_uring",
            Driver::Epoll => "epoll",
        }
    }
}

/// As `GLOMMIO_DRIVER` has it: `auto`, `io_uring` or `epoll`.
impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Whether io_uring is missing or forbidden, which [`Driver::Auto`] has an answer to. Says so once.
pub(super) fn is_to_fall_back(error: &GlommioError<()>) -> bool {
    static SAID: OnceLock<()> = OnceLock::new();
    let GlommioError::IoError(reason) = error else {
        return false;
    };
    let is_to_fall_back = matches!(
        reason.kind(),
        io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
    );
    if is_to_fall_back && SAID.set(()).is_ok() {
        tracing::warn!(
            driver = "epoll",
            "executors of this process use epoll, as {reason}; GLOMMIO_DRIVER=epoll says that this is meant: \
             see docs/guide/drivers.md"
        );
    }
    is_to_fall_back
}
