//! The sleep protocol and the mailbox: as laws on one thread, on real threads, and under loom.

#[cfg(loom)]
mod loom_close;
#[cfg(loom)]
mod loom_sleep;
#[cfg(not(loom))]
mod protocol;
#[cfg(not(loom))]
mod threads;
