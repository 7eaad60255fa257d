//! Times and counts: the defaults of Linux.

use std::time::Duration;

pub(super) const INITIAL_TIMEOUT: Duration = Duration::from_secs(1);
pub(super) const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);
pub(super) const LONGEST_TIMEOUT: Duration = Duration::from_secs(120);
/// `tcp_syn_retries`.
pub(super) const SYN_RETRIES: u32 = 6;
/// `tcp_synack_retries`.
pub(super) const SYN_ACK_RETRIES: u32 = 5;
/// What 15 `tcp_retries2` are.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_millis(924_600);
/// What 8 retries of an orphan are.
pub(super) const ORPHAN_SILENCE_LIMIT: Duration = Duration::from_millis(102_200);
/// `tcp_fin_timeout`, and the time that TIME_WAIT takes.
pub(super) const LINGER: Duration = Duration::from_secs(60);
/// Segments of the first flight (RFC 6928).
pub(super) const INITIAL_WINDOW: u64 = 10;
