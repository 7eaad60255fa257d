//! The doors to the operating system that are not the ring.

pub(crate) mod affinity;
pub(crate) mod block_device;
pub(crate) mod datagrams;
pub(crate) mod descriptor;
pub(crate) mod door;
#[cfg(feature = "debugging")]
pub(crate) mod fd_name;
pub(crate) mod file;
pub(crate) mod fork_detect;
pub(crate) mod limits;
pub(crate) mod nowait;
pub(crate) mod pidfd;
pub(crate) mod prefetch;
pub(crate) mod raw_fd;
pub(crate) mod scm_rights;
pub(crate) mod signal;
pub mod socket;
pub(crate) mod splice;
pub(crate) mod stack_trap;
pub(crate) mod sysfs;
pub(crate) mod thread_time;
pub(crate) mod time_namespace;
pub(crate) mod topology;
pub(crate) mod unix_address;
pub(crate) mod unsent;
