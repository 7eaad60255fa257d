//! The record of a node.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::address::{SocketId, UnixName};
use super::packet::Packet;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) is_up: bool,
    pub(super) is_paused: bool,
    /// Packets that came while it was paused.
    pub(super) held: Vec<Packet>,
    /// The names of Unix sockets. A path stays when its socket is closed, until it is unlinked.
    pub(super) unix_names: BTreeMap<UnixName, Option<SocketId>>,
}
