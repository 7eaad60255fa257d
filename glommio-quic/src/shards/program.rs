//! The program by which the kernel finds the shard of a packet: `shard_of` in classic BPF, which any
//! process may attach to its own sockets (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5).

use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use std::io;
use std::net::UdpSocket;

/// The kernel looks at addresses for a number that is no socket's.
const BY_ADDRESSES: u32 = u32::MAX;

/// Attaches the program to all sockets that are bound to the address of `socket`. `order` has the
/// numbers of the shards in the order of their sockets, unless each is at its own.
pub(super) fn attach(socket: &UdpSocket, order: Option<&[u8]>) -> io::Result<()> {
    let mut filter = program(order);
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // The kernel copies it within the call.
    setsockopt(socket, AttachReusePortCbpf, &program)?;
    Ok(())
}

/// It sees the datagram without its UDP header. A load from beyond its end returns 0.
fn program(order: Option<&[u8]>) -> Vec<libc::sock_filter> {
    use libc::{BPF_ABS, BPF_B, BPF_JA, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET};
    const A: u32 = 0x10;
    let op = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let byte = |at: u32| op(BPF_LD | BPF_B | BPF_ABS, at, 0, 0);
    let ret = |index: u32| op(BPF_RET | BPF_K, index, 0, 0);
    let mut program = vec![
        byte(0),
        op(BPF_JMP | BPF_JSET | BPF_K, 0x80, 0, 5),
        // A long header, with a connection ID as long as ours?
        byte(5),
        op(BPF_JMP | BPF_JEQ | BPF_K, super::ids::ID_LEN as u32, 1, 0),
        ret(BY_ADDRESSES),
        byte(6),
        op(BPF_JMP | BPF_JA, 1, 0, 0),
        // A short header: the connection ID follows.
        byte(1),
    ];
    let Some(order) = order else {
        program.push(op(BPF_RET | A, 0, 0, 0));
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
