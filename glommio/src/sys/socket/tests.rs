use super::*;

/// A control message as the kernel writes it.
fn told(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Control {
    let mut control = Control::zeroed();
    control.header.cmsg_len = (size_of::<libc::cmsghdr>() + data.len()) as _;
    (control.header.cmsg_level, control.header.cmsg_type) = (level, kind);
    control.data[..data.len()].copy_from_slice(data);
    control
}

const WHOLE: usize = size_of::<Control>();
const HEADER: usize = size_of::<libc::cmsghdr>();

fn record(kind: &[u8]) -> Control {
    told(libc::SOL_TLS, libc::TLS_GET_RECORD_TYPE, kind)
}

#[test]
fn only_a_whole_report_tells_the_type_of_a_record() {
    for kind in [21, 22, 23] {
        assert_eq!(record(&[kind]).record_kind(WHOLE), Some(kind));
        assert_eq!(record(&[kind]).record_kind(HEADER + 1), Some(kind));
        assert_eq!(record(&[kind]).record_kind(HEADER), None);
        assert_eq!(record(&[kind]).record_kind(0), None);
    }
    let other = told(libc::SOL_SOCKET, libc::TLS_GET_RECORD_TYPE, &[22]);
    for other in [record(&[]), record(&[22, 22]), other] {
        assert_eq!(other.record_kind(WHOLE), None);
    }
}
