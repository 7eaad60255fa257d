//! The program by which the kernel finds the shard of a packet: `shard_of` in classic BPF, which any
//! process may attach to its own sockets (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5).

use libc::{
    BPF_ABS, BPF_ADD, BPF_ALU, BPF_B, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD,
    BPF_MOD, BPF_RET, BPF_SUB,
};
use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use std::io;
use std::net::UdpSocket;

/// The kernel looks at addresses for a number that is no socket's.
const BY_ADDRESSES: u32 = u32::MAX;

/// Attaches a program to all sockets that are bound to the address of `socket`.
pub(super) fn attach(socket: &UdpSocket, mut filter: Vec<libc::sock_filter>) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // The kernel copies it within the call.
    setsockopt(socket, AttachReusePortCbpf, &program)?;
    Ok(())
}

/// Returns the value that was loaded.
const RET_LOADED: u32 = BPF_RET | 0x10;

fn op(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    let code = code as u16;
    libc::sock_filter { code, jt, jf, k }
}

fn byte(at: u32) -> libc::sock_filter {
    op(BPF_LD | BPF_B | BPF_ABS, at, 0, 0)
}

fn ret(index: u32) -> libc::sock_filter {
    op(BPF_RET | BPF_K, index, 0, 0)
}

/// Loads the number of a shard. It sees the datagram without its UDP header. A load from beyond its end
/// returns 0. With an ID of another length goes on by `unknown`.
fn load_number(unknown: libc::sock_filter) -> Vec<libc::sock_filter> {
    vec![
        byte(0),
        op(BPF_JMP | BPF_JSET | BPF_K, 0x80, 0, 5),
        // A long header, with a connection ID as long as ours?
        byte(5),
        op(BPF_JMP | BPF_JEQ | BPF_K, super::ids::ID_LEN as u32, 1, 0),
        unknown,
        byte(6),
        op(BPF_JMP | BPF_JA, 1, 0, 0),
        // A short header: the connection ID follows.
        byte(1),
    ]
}

/// `order` has the numbers of the shards in the order of their sockets, unless each is at its own.
pub(super) fn by_order(order: Option<&[u8]>) -> Vec<libc::sock_filter> {
    let mut program = load_number(ret(BY_ADDRESSES));
    let Some(order) = order else {
        program.push(op(RET_LOADED, 0, 0, 0));
        return program;
    };
    // Of two sockets of a shard the first is about to be closed.
    for (index, number) in (0..order.len()).zip(order).rev() {
        program.push(op(BPF_JMP | BPF_JEQ | BPF_K, u32::from(*number), 0, 1));
        program.push(ret(index as u32));
    }
    program.push(ret(BY_ADDRESSES));
    program
}

/// For `count` sockets of this process, whose numbers begin with `first`, and as many of another one,
/// whose numbers begin with another multiple of `count`. Those of this one are last if it `is_behind`,
/// and then it gets all new clients: each by a byte of the ID that it has chosen.
pub(super) fn shared(first: usize, count: usize, is_behind: bool) -> Vec<libc::sock_filter> {
    let (first, count) = (first as u32, count as u32);
    let alu = |code: u32, k: u32| op(BPF_ALU | code | BPF_K, k, 0, 0);
    let (own, other) = if is_behind { (count, 0) } else { (0, count) };
    let mut program = load_number(op(BPF_JMP | BPF_JA, 11, 0, 0));
    program.extend([
        op(BPF_JMP | BPF_JGE | BPF_K, first + count, 1, 0),
        op(BPF_JMP | BPF_JGE | BPF_K, first, 3, 0),
        alu(BPF_MOD, count),
        alu(BPF_ADD, other),
        op(RET_LOADED, 0, 0, 0),
        alu(BPF_SUB, first),
        alu(BPF_ADD, own),
        op(RET_LOADED, 0, 0, 0),
        // Where the first jump leads to.
        byte(6),
        alu(BPF_MOD, count),
        alu(BPF_ADD, own),
        op(RET_LOADED, 0, 0, 0),
    ]);
    program
}
