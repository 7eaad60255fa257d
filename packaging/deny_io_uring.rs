//! `deny_io_uring PROGRAM ARGUMENT..`: runs a program for which each system call of io_uring fails with `EPERM`, as in a container of
//! Docker. `packaging/first-run` builds this with `rustc` alone.

use std::ffi::{c_int, c_ulong};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// As in `linux/filter.h`.
#[repr(C)]
struct Instruction {
    code: u16,
    jump_if_true: u8,
    jump_if_false: u8,
    value: u32,
}

#[repr(C)]
struct Filter {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    deny_io_uring()?;
    Err(Command::new(program).args(arguments).exec())
}

/// On this thread, and in what it executes.
fn deny_io_uring() -> io::Result<()> {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_UNLESS_BELOW: u16 = 0x35;
    const JUMP_IF_ABOVE: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    const EPERM: u32 = 1;
    // `io_uring_setup` to `io_uring_register`, on each architecture.
    const FIRST: u32 = 425;
    const LAST: u32 = 427;
    let instruction = |code, jump_if_true, jump_if_false, value| Instruction {
        code,
        jump_if_true,
        jump_if_false,
        value,
    };
    let instructions = [
        instruction(LOAD_NUMBER, 0, 0, 0),
        instruction(JUMP_UNLESS_BELOW, 0, 2, FIRST),
        instruction(JUMP_IF_ABOVE, 1, 0, LAST),
        instruction(RETURN, 0, 0, ERRNO | EPERM),
        instruction(RETURN, 0, 0, ALLOW),
    ];
    let filter = Filter {
        length: instructions.len() as u16,
        instructions: instructions.as_ptr(),
    };
    const NO_NEW_PRIVILEGES: c_int = 38;
    const SECCOMP: c_int = 22;
    const MODE_FILTER: c_ulong = 2;
    let (zero, one): (c_ulong, c_ulong) = (0, 1);
    // SAFETY: the first call takes numbers only. What the second is given outlives it, and the kernel copies it.
    let failed = unsafe {
        prctl(NO_NEW_PRIVILEGES, one, zero, zero, zero) != 0
            || prctl(SECCOMP, MODE_FILTER, &raw const filter) != 0
    };
    if failed {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
