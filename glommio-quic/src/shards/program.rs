//! The program by which the kernel finds the shard of a packet: `shard_of` in classic BPF, which any
//! process may attach to its own sockets (`SO_ATTACH_REUSEPORT_CBPF`, Linux 4.5).

use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};
use std::io;
use std::net::UdpSocket;

/// The kernel looks at addresses for a number that is no socket's.
const BY_ADDRESSES: u32 = u32::MAX;

/// Attaches the program to all sockets that are bound to the address of `socket`.
pub(super) fn attach(socket: &UdpSocket) -> io::Result<()> {
    let mut filter = program();
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // The kernel copies it within the call.
    setsockopt(socket, AttachReusePortCbpf, &program)?;
    Ok(())
}

/// It sees the datagram without its UDP header. A load from beyond its end returns 0.
fn program() -> [libc::sock_filter; 11] {
    use libc::{
        BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET,
    };
    const A: u32 = 0x10;
    let op = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let byte = |at: u32| op(BPF_LD | BPF_B | BPF_ABS, at, 0, 0);
    let ret_a = op(BPF_RET | A, 0, 0, 0);
    [
        byte(0),
        op(BPF_JMP | BPF_JSET | BPF_K, 0x80, 2, 0),
        // A short header: the connection ID follows.
        byte(1),
        ret_a,
        // A long header: of a Handshake packet?
        op(BPF_ALU | BPF_AND | BPF_K, 0x30, 0, 0),
        op(BPF_JMP | BPF_JEQ | BPF_K, 0x20, 0, 4),
        // With a connection ID as long as ours?
        byte(5),
        op(BPF_JMP | BPF_JEQ | BPF_K, super::ID_LEN as u32, 0, 2),
        byte(6),
        ret_a,
        op(BPF_RET | BPF_K, BY_ADDRESSES, 0, 0),
    ]
}
