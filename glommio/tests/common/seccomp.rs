//! System calls that a sandbox forbids, or a kernel does not have.

use std::io;

/// Makes a system call fail with `errno` on this thread and those that it starts.
pub fn deny(system_call: libc::c_long, errno: libc::c_int) {
    deny_all(&[system_call], errno);
}

/// The same of several.
pub fn deny_all(system_calls: &[libc::c_long], errno: libc::c_int) {
    filter(
        libc::BPF_JEQ,
        system_calls,
        libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(),
    );
}

/// The same of all whose number is `first` or higher.
pub fn deny_from(first: libc::c_long, errno: libc::c_int) {
    filter(
        libc::BPF_JGE,
        &[first],
        libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(),
    );
}

/// Has a system call of this thread, and of those that it starts, end the process.
pub fn forbid(system_call: libc::c_long) {
    filter(
        libc::BPF_JEQ,
        &[system_call],
        libc::SECCOMP_RET_KILL_PROCESS,
    );
}

/// `answer` is that to the calls whose number compares so with one of `system_calls`.
fn filter(comparison: u32, system_calls: &[libc::c_long], answer: u32) {
    let code = |code: u32| u16::try_from(code).expect("instructions have 16 bits");
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The number of the system call is the first word of what a filter sees.
    let mut filter = vec![instruction(
        code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS),
        0,
        0,
        0,
    )];
    for &system_call in system_calls {
        let number = u32::try_from(system_call).expect("numbers of system calls are small");
        let jump = code(libc::BPF_JMP | comparison | libc::BPF_K);
        filter.push(instruction(jump, 0, 1, number));
        filter.push(instruction(code(libc::BPF_RET | libc::BPF_K), 0, 0, answer));
    }
    filter.push(instruction(
        code(libc::BPF_RET | libc::BPF_K),
        0,
        0,
        libc::SECCOMP_RET_ALLOW,
    ));
    install(&mut filter);
}

/// Filters the system calls of this thread, and of those that it starts.
pub fn install(filter: &mut [libc::sock_filter]) {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).expect("filters are short"),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: (1) the first call takes numbers only. (2) `program` and the filter that it points to
    // live until the second returns; the kernel copies them.
    let results = unsafe {
        [
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program),
        ]
    };
    assert_eq!(results, [0, 0], "{}", io::Error::last_os_error());
}
