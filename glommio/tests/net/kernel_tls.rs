//! Connections whose records the kernel encrypts (`TCP_ULP`, `tls`), where it can.

use std::io::Write;
use std::net::TcpStream as StdStream;

use glommio::net::tls_record;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{TcpTlsRx, TcpTlsTx, TcpUlp, TlsCryptoInfo};

use super::{AGES, Result, aged_pair, io_kind, run};
use crate::common::prelude::*;

/// As `tls12_crypto_info_aes_gcm_128` of `linux/tls.h`, with keys that are no secret.
fn keys() -> TlsCryptoInfo {
    TlsCryptoInfo::Aes128Gcm(libc::tls12_crypto_info_aes_gcm_128 {
        info: libc::tls_crypto_info {
            version: libc::TLS_1_2_VERSION,
            cipher_type: libc::TLS_CIPHER_AES_GCM_128,
        },
        iv: [1; 8],
        key: [2; 16],
        salt: [3; 4],
        rec_seq: [0; 8],
    })
}

/// Has the kernel encrypt what `peer` sends and decrypt it for `stream`. False if it cannot.
fn encrypt(peer: &StdStream, stream: &TcpStream) -> io::Result<bool> {
    if let Err(error) = setsockopt(peer, TcpUlp::default(), b"tls") {
        skipped(format_args!("this kernel has no TLS: {error}"));
        return Ok(false);
    }
    setsockopt(stream, TcpUlp::default(), b"tls")?;
    setsockopt(peer, TcpTlsTx, &keys())?;
    setsockopt(stream, TcpTlsRx, &keys())?;
    Ok(true)
}

/// Sends a record of another kind than application data.
fn send_record(peer: &StdStream, kind: u8, content: &mut [u8]) {
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        kind: [u8; 8],
    }
    // SAFETY: all of these consist of integers and pointers that may be null.
    let (mut control, mut header): (Control, libc::msghdr) = unsafe { std::mem::zeroed() };
    control.header.cmsg_len = (size_of::<libc::cmsghdr>() + 1) as _;
    control.header.cmsg_level = libc::SOL_TLS;
    control.header.cmsg_type = libc::TLS_SET_RECORD_TYPE;
    control.kind[0] = kind;
    let mut slice = libc::iovec {
        iov_base: content.as_mut_ptr().cast(),
        iov_len: content.len(),
    };
    header.msg_iov = &raw mut slice;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: what the header points to outlives the call, and is as long as it says.
    let sent = unsafe { libc::sendmsg(peer.as_raw_fd(), &raw const header, 0) };
    assert_eq!(
        usize::try_from(sent),
        Ok(content.len()),
        "{}",
        io::Error::last_os_error()
    );
}

/// Alerts and session tickets are no data, whether the connection was read often before or not.
#[run_test]
async fn records_that_are_not_data_are_not_read_as_data() {
    const ALERT: u8 = 21;
    const HANDSHAKE: u8 = 22;
    for kind in [ALERT, HANDSHAKE] {
        for age in AGES {
            let (mut stream, mut peer) = aged_pair(age).await?;
            if !encrypt(&peer, &stream)? {
                return Ok(());
            }
            let mut buf = [0; 16];
            for _ in 0..20 {
                peer.write_all(b"data")?;
                assert_eq!(stream.read(&mut buf).await?, 4);
                assert_eq!(&buf[..4], b"data");
            }
            send_record(&peer, kind, &mut [1, 0]);
            let error = stream.read(&mut buf).await.expect_err("it is no data");
            assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
        }
    }
    Result::Ok(())
}

/// A receive may stop at the end of a record, short of what there is.
#[run_test]
async fn what_lies_behind_a_record_is_read() {
    for age in AGES {
        let (mut stream, mut peer) = aged_pair(age).await?;
        if !encrypt(&peer, &stream)? {
            return Ok(());
        }
        let mut buf = [0; 64];
        for _ in 0..20 {
            for part in [&b"one"[..], b"two", b"three"] {
                peer.write_all(part)?;
            }
            // There are no events after this.
            sleep(Duration::from_micros(200)).await;
            let mut received = Vec::new();
            while received.len() < 11 {
                let count = stream.read(&mut buf).await?;
                received.extend_from_slice(&buf[..count]);
            }
            assert_eq!(received, b"onetwothree");
        }
        peer.write_all(b"data")?;
        send_record(&peer, tls_record::ALERT, &mut [1, 0]);
        sleep(Duration::from_micros(200)).await;
        assert_eq!(stream.read(&mut buf).await?, 4);
        let error = stream.read(&mut buf).await.expect_err("it is no data");
        assert_eq!(error.raw_os_error(), Some(libc::EIO), "{error}");
    }
    Result::Ok(())
}

/// Each with its content type, whether the connection was read often before or not; what does not
/// fit comes with the next call.
#[run_test]
async fn records_are_told_apart_by_their_types() {
    for age in AGES {
        let (mut stream, mut peer) = aged_pair(age).await?;
        if !encrypt(&peer, &stream)? {
            return Ok(());
        }
        let mut buf = [0; 16];
        for _ in 0..3 {
            peer.write_all(b"data")?;
            send_record(&peer, tls_record::HANDSHAKE, &mut [7; 20]);
            peer.write_all(b"more")?;
            send_record(&peer, tls_record::ALERT, &mut [1, 0]);
            let mut received = Vec::new();
            for _ in 0..5 {
                let (count, kind) = stream.recv_tls_record(&mut buf).await?;
                received.push((buf[..count].to_vec(), kind.expect("the kernel decrypts")));
            }
            let expected = [
                (b"data".to_vec(), tls_record::APPLICATION_DATA),
                (vec![7; 16], tls_record::HANDSHAKE),
                (vec![7; 4], tls_record::HANDSHAKE),
                (b"more".to_vec(), tls_record::APPLICATION_DATA),
                (vec![1, 0], tls_record::ALERT),
            ];
            assert_eq!(received, expected);
            // One that waits, and an ordinary read in between.
            {
                let waiting = stream.recv_tls_record(&mut buf);
                let mut waiting = std::pin::pin!(waiting);
                assert!(poll_once(&mut waiting).await.is_none());
                send_record(&peer, tls_record::ALERT, &mut [2]);
                assert_eq!(waiting.await?, (1, Some(tls_record::ALERT)));
            }
            peer.write_all(b"data")?;
            assert_eq!(stream.read(&mut buf).await?, 4);
        }
    }
    Result::Ok(())
}

/// Without the kernel's TLS it is an ordinary read.
#[run_test]
async fn what_is_not_encrypted_has_no_type() {
    for age in AGES {
        let (mut stream, mut peer) = aged_pair(age).await?;
        stream.set_read_timeout(Some(Duration::from_millis(5)))?;
        let mut buf = [0; 16];
        let error = stream.recv_tls_record(&mut buf).await.expect_err("silence");
        assert_eq!(io_kind(&error), io::ErrorKind::TimedOut);
        peer.write_all(b"plain")?;
        assert_eq!(stream.recv_tls_record(&mut []).await?, (0, None));
        assert_eq!(stream.recv_tls_record(&mut buf).await?, (5, None));
        peer.write_all(b"more")?;
        assert_eq!(stream.read(&mut buf).await?, 4);
        drop(peer);
        assert_eq!(stream.recv_tls_record(&mut buf).await?, (0, None));
    }
    Result::Ok(())
}
