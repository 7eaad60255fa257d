//! The system calls that move most of the data: receiving and sending without waiting.
//!
//! They are made through `syscall(2)`. The C library's own wrappers are cancellation points of POSIX
//! threads, which every call pays for with two atomic operations as soon as a process has a second
//! thread; nobody cancels threads here.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// Receives what is there into `buf`, without waiting.
pub fn receive(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes to no more than the `buf.len()` bytes at `buf`, which is borrowed for
    // the call; no address is asked for.
    let received = unsafe {
        libc::syscall(
            libc::SYS_recvfrom,
            fd,
            buf.as_mut_ptr(),
            buf.len(),
            libc::MSG_DONTWAIT,
            std::ptr::null_mut::<libc::sockaddr>(),
            std::ptr::null_mut::<libc::socklen_t>(),
        )
    };
    count(received)
}

/// Sends as much of `buf` as there is room for, without waiting and without `SIGPIPE`.
pub fn send(fd: RawFd, buf: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads no more than the `buf.len()` bytes at `buf`, which is borrowed for the
    // call; there is no address.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_sendto,
            fd,
            buf.as_ptr(),
            buf.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            std::ptr::null::<libc::sockaddr>(),
            0 as libc::socklen_t,
        )
    };
    count(sent)
}

/// Has a TCP socket say with each message how much more it holds (`TCP_INQ`, Linux 4.18), or stop it.
///
/// # Errors
///
/// What `setsockopt(2)` gives: other sockets know no such thing.
pub fn set_reports_rest(fd: BorrowedFd<'_>, reports: bool) -> io::Result<()> {
    let value = libc::c_int::from(reports);
    // SAFETY: the option is an int, which the kernel reads during the call.
    let failed = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_TCP,
            libc::TCP_INQ,
            (&raw const value).cast(),
            size_of_val(&value) as libc::socklen_t,
        )
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// As [`receive`], for a socket that [reports the rest](set_reports_rest). Also returns whether the
/// socket is known to be empty now: nothing is left, and the peer has not ended the stream.
pub fn receive_all(fd: RawFd, buf: &mut [u8]) -> io::Result<(usize, bool)> {
    let mut slice = libc::iovec {
        iov_base: buf.as_mut_ptr().cast(),
        iov_len: buf.len(),
    };
    let mut control = MaybeUninit::<Report>::uninit();
    // SAFETY: a header without name, slices or control data is one of zeros.
    let mut header: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Report>() as _;
    // SAFETY: the kernel writes to the header, to the `buf.len()` bytes at `buf`, and to no more than
    // `msg_controllen` bytes at `control`; all three outlive the call.
    let received =
        unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut header, libc::MSG_DONTWAIT) };
    let bytes = count(received)?;
    if header.msg_controllen < REPORT_BYTES as _ {
        return Ok((bytes, false));
    }
    // SAFETY: the kernel has written that much of it, and every pattern of bits is a report.
    let report = unsafe { control.assume_init() };
    let is_report =
        report.header.cmsg_level == libc::SOL_TCP && report.header.cmsg_type == libc::TCP_CM_INQ;
    Ok((bytes, is_report && report.rest == 0))
}

/// The one control message that such a socket sends.
#[repr(C)]
#[derive(Clone, Copy)]
struct Report {
    header: libc::cmsghdr,
    rest: libc::c_int,
}

/// Up to the last byte of it; the padding behind it is not always written.
const REPORT_BYTES: usize = size_of::<libc::cmsghdr>() + size_of::<libc::c_int>();

fn count(returned: libc::c_long) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let (server, _) = listener.accept().expect("a client came");
        (client, server)
    }

    /// As `receive_all`, once something has come.
    fn wait_and_receive(socket: &TcpStream, buf: &mut [u8]) -> (usize, bool) {
        loop {
            match receive_all(socket.as_raw_fd(), buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => return received.expect("the connection is up"),
            }
        }
    }

    /// Waits until the peer's end of the stream is there, maybe behind data.
    fn wait_for_end(socket: &TcpStream) {
        let mut polled = [PollFd::new(
            socket.as_fd(),
            PollFlags::from_bits_retain(libc::POLLRDHUP),
        )];
        poll(&mut polled, PollTimeout::NONE).expect("there is one descriptor");
    }

    #[test]
    fn data_goes_through_as_it_is() {
        let (client, server) = pair();
        let (client, server) = (client.as_raw_fd(), server.as_raw_fd());
        let mut buf = [0; 8];
        let empty = receive(server, &mut buf).expect_err("nothing was sent");
        assert_eq!(empty.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(send(client, b"hello").expect("there is room"), 5);
        let received = loop {
            match receive(server, &mut buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                received => break received.expect("the connection is up"),
            }
        };
        assert_eq!(&buf[..received], b"hello");
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error_and_no_signal() {
        let (client, server) = pair();
        drop(server);
        let error = loop {
            if let Err(error) = send(client.as_raw_fd(), b"x") {
                break error;
            }
        };
        assert!(matches!(
            error.kind(),
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
        ));
    }

    #[test]
    fn a_socket_tells_whether_it_is_empty() {
        let (mut client, server) = pair();
        set_reports_rest(server.as_fd(), true).expect("TCP can tell");
        client.write_all(b"12345").expect("there is room");
        let mut buf = [0; 2];
        assert_eq!(wait_and_receive(&server, &mut buf), (2, false));
        assert_eq!(wait_and_receive(&server, &mut buf), (2, false));
        assert_eq!(wait_and_receive(&server, &mut buf), (1, true));
        client.write_all(b"67").expect("there is room");
        assert_eq!(wait_and_receive(&server, &mut buf), (2, true));
        // The end is something to receive, also if it came with the data.
        client.write_all(b"89").expect("there is room");
        client.shutdown(Shutdown::Write).expect("it is connected");
        wait_for_end(&server);
        let (bytes, is_empty) = wait_and_receive(&server, &mut buf);
        assert_eq!(bytes, 2);
        assert!(!is_empty, "the end is there to be received");
        assert_eq!(wait_and_receive(&server, &mut buf), (0, false));
    }

    #[test]
    fn a_socket_that_does_not_tell_is_not_known_to_be_empty() {
        let (mut client, server) = pair();
        client.write_all(b"1").expect("there is room");
        assert_eq!(wait_and_receive(&server, &mut [0; 8]), (1, false));
        let (unix, _other) = std::os::unix::net::UnixStream::pair().expect("descriptors are free");
        set_reports_rest(unix.as_fd(), true).expect_err("only TCP can tell");
        set_reports_rest(server.as_fd(), true).expect("TCP can tell");
        set_reports_rest(server.as_fd(), false).expect("TCP can stop telling");
        client.write_all(b"2").expect("there is room");
        assert_eq!(wait_and_receive(&server, &mut [0; 8]), (1, false));
    }
}
