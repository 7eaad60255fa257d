//! What a descriptor refers to, in words.

#![forbid(unsafe_code)]

use std::fs;
use std::os::fd::RawFd;

use nix::sys::socket::{SockaddrLike, SockaddrStorage, getpeername, getsockname};

use super::door::door;

/// A file by its path, a socket by its addresses, a child process by its number.
///
/// The descriptor may be closed, or be that of something else by now: then this says so, or says
/// what that is.
pub(crate) fn of(fd: RawFd) -> String {
    door!(socket(fd) => format!("a simulated socket {fd}"));
    let Ok(target) = fs::read_link(format!("/proc/self/fd/{fd}")) else {
        return format!("descriptor {fd}");
    };
    let target = target.to_string_lossy();
    if target.starts_with("socket:") {
        return socket(fd);
    }
    let kind = target.trim_start_matches("anon_inode:");
    if kind.contains("pidfd") {
        return child(fd);
    }
    match kind {
        "[signalfd]" => "signals".to_owned(),
        "[eventfd]" => "an eventfd".to_owned(),
        _ => target.into_owned(),
    }
}

fn socket(fd: RawFd) -> String {
    let local = getsockname::<SockaddrStorage>(fd).ok();
    let peer = getpeername::<SockaddrStorage>(fd).ok();
    let local = local.filter(|it| it.len() > 0).map(|it| it.to_string());
    match (local, peer) {
        (Some(local), Some(peer)) => format!("socket {local} (peer {peer})"),
        (Some(local), None) => format!("socket {local}"),
        (None, _) => format!("socket {fd}"),
    }
}

/// The process of a pidfd.
fn child(fd: RawFd) -> String {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).unwrap_or_default();
    let number = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    match number.map(str::trim) {
        Some("-1") => "a child process that has ended".to_owned(),
        Some(number) => format!("child process {number}"),
        None => "a child process".to_owned(),
    }
}
