//! What is written is what is read.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::control::{self, ControlMessages};
use super::name::Name;
use super::receive::Message;

type Control = control::Control<256>;

fn addresses() -> impl Strategy<Value = SocketAddr> {
    prop_oneof![
        any::<([u8; 4], u16)>().prop_map(SocketAddr::from),
        any::<([u8; 16], u16, u32, u32)>().prop_map(|(ip, port, flow, scope)| {
            std::net::SocketAddrV6::new(ip.into(), port, flow, scope).into()
        }),
    ]
}

proptest! {
    #[test]
    fn addresses_are_read_as_they_were_written(address in addresses()) {
        let (name, length) = Name::new(&address);
        prop_assert_eq!(name.address(length).expect("it is one"), address);
        prop_assert!(name.address(length - 1).is_err(), "it is cut");
    }

    #[test]
    fn control_messages_are_read_as_they_were_written(
        messages in prop::collection::vec(
            any::<(i32, i32, [u8; 20], u8)>().prop_map(|(level, kind, data, length)| {
                (level, kind, data[..usize::from(length) % 21].to_vec())
            }),
            0..6,
        ),
    ) {
        let mut control = Control::EMPTY;
        let mut end = 0;
        for (level, kind, data) in &messages {
            end = control.put(end, *level, *kind, data);
        }
        let read = ControlMessages::of(&control, end);
        let read: Vec<_> = read.map(|(level, kind, data)| (level, kind, data.to_vec())).collect();
        prop_assert_eq!(read, messages);
    }

    /// Whatever the bytes are, reading them ends, within them.
    #[test]
    fn no_bytes_make_reading_fail(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        lengths in prop::collection::vec(0_usize..300, 1..4),
        written in 0_usize..400,
    ) {
        let mut control = Control::EMPTY;
        let mut at = 0;
        for length in lengths {
            at = control.put(at, 0, 0, &bytes[..bytes.len().min(30)]).max(at);
            control.put(0, length as i32, 1, &bytes[..bytes.len().min(30)]);
        }
        let mut message = Message {
            length: 100,
            from: SocketAddr::from(([127, 0, 0, 1], 1)),
            segment_bytes: None,
            ecn: 0,
            destination: None,
            received_at: None,
            is_truncated: false,
        };
        let kinds = [
            (libc::SOL_UDP, libc::UDP_GRO),
            (libc::IPPROTO_IP, libc::IP_TOS),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            (libc::IPPROTO_IP, libc::IP_PKTINFO),
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO),
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS),
        ];
        for (_, _, data) in ControlMessages::of(&control, written) {
            for (level, kind) in kinds {
                message.learn(level, kind, data);
            }
        }
        prop_assert!(message.ecn < 4);
        prop_assert!(message.segment_bytes.is_none_or(|bytes| 0 < bytes && bytes < 100));
    }
}

#[test]
fn a_message_that_says_it_is_longer_than_it_is_ends_the_reading() {
    let mut control = Control::EMPTY;
    let end = control.put(0, 1, 2, &[3; 4]);
    for written in 0..end {
        let count = ControlMessages::of(&control, written).count();
        assert_eq!(count, usize::from(written >= 20), "{written}");
    }
    let behind = control.put(end, 1, 2, &[3; 4]);
    assert_eq!(ControlMessages::of(&control, behind).count(), 2);
    assert_eq!(ControlMessages::of(&Control::EMPTY, 256).count(), 0);
}
