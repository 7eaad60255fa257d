//! What `audit.rs` is without the feature `audit`: nothing.

use std::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Audit(());

impl Audit {
    #[inline(always)]
    pub(crate) fn announced(&self, _next: Option<Instant>) {}

    #[inline(always)]
    pub(crate) fn waking(&self) {}
}

#[derive(Debug, Default)]
pub(crate) struct SetTimer(());

impl SetTimer {
    #[inline(always)]
    pub(crate) fn set(&mut self, _deadline: Instant, _audit: &Audit) {}

    #[inline(always)]
    pub(crate) fn found_due(&mut self, _was_queued: bool, _audit: &Audit) {}

    #[inline(always)]
    pub(crate) fn found_early(&mut self, _deadline: Instant) {}
}
