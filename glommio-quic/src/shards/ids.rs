//! Connection IDs that tell the shard.

use super::membership::Group;
use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use std::sync::Arc;
use std::time::Duration;

/// They do in the clear: who sees the packets of a connection before and after a migration learns
/// that both are for one shard of `count`.
pub(super) struct ShardIds {
    pub(super) number: u8,
    pub(super) group: Arc<Group>,
}

/// A byte for the shard, and random ones.
pub(super) const ID_LEN: usize = 8;

impl ConnectionIdGenerator for ShardIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; ID_LEN];
        // It has given the keys of the endpoint before.
        graviola::random::fill(&mut id[1..]).expect("the system has random bytes");
        id[0] = self.number;
        ConnectionId::new(&id)
    }

    /// Of this shard, or of one that is gone. Those of other processes may be alive, and are not to
    /// be reset.
    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        match cid.len() == ID_LEN && self.group.has(cid[0]) {
            true => Ok(()),
            false => Err(InvalidCid),
        }
    }

    fn cid_len(&self) -> usize {
        ID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
