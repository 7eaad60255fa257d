//! A TLS session of rustls, as quinn-proto takes it.

use super::HandshakeData;
use bytes::BytesMut;
use graviola::aead::AesGcm;
use quinn_proto::crypto::{self, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::pki_types::CertificateDer;
use rustls::quic::{Connection, DirectionalKeys, HeaderProtectionKey, KeyChange, PacketKey};
use rustls::quic::{Secrets, Suite, Version};
use std::any::Any;

pub(super) struct Session {
    version: Version,
    initial: Suite,
    tls: Connection,
    /// Of the next key update.
    next: Option<Secrets>,
    has_handshake_data: bool,
}

impl Session {
    pub(super) fn new(version: Version, initial: Suite, tls: Connection) -> Session {
        Session {
            version,
            initial,
            tls,
            next: None,
            has_handshake_data: false,
        }
    }

    fn server_name(&self) -> Option<&str> {
        match &self.tls {
            Connection::Client(_) => None,
            Connection::Server(tls) => tls.server_name(),
        }
    }

    fn side(&self) -> Side {
        match self.tls {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        initial_keys(self.version, dst_cid, side, &self.initial)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.has_handshake_data.then(|| -> Box<dyn Any> {
            Box::new(HandshakeData {
                protocol: self.tls.alpn_protocol().map(Vec::from),
                server_name: self.server_name().map(String::from),
            })
        })
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        let certificates = self.tls.peer_certificates()?.iter();
        let owned: Vec<CertificateDer<'static>> =
            certificates.map(|it| it.clone().into_owned()).collect();
        Some(Box::new(owned))
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn crypto::PacketKey>)> {
        let keys = self.tls.zero_rtt_keys()?;
        Some(boxed(keys))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.tls {
            Connection::Client(tls) => Some(tls.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.tls.read_hs(buf).map_err(|error| TransportError {
            code: match self.tls.alert() {
                Some(alert) => TransportErrorCode::crypto(alert.into()),
                None => TransportErrorCode::PROTOCOL_VIOLATION,
            },
            frame: None,
            reason: error.to_string(),
        })?;
        if self.has_handshake_data {
            return Ok(false);
        }
        // rustls does not tell when it has read the ClientHello, or when a protocol is chosen.
        self.has_handshake_data = self.tls.alpn_protocol().is_some()
            || self.server_name().is_some()
            || !self.tls.is_handshaking();
        Ok(self.has_handshake_data)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut encoded) = self.tls.quic_transport_parameters() else {
            return Ok(None);
        };
        Ok(Some(TransportParameters::read(self.side(), &mut encoded)?))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = match self.tls.write_hs(buf)? {
            KeyChange::Handshake { keys } => keys,
            KeyChange::OneRtt { keys, next } => {
                self.next = Some(next);
                keys
            }
        };
        Some(boxed_both(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn crypto::PacketKey>>> {
        let keys = self.next.as_mut()?.next_packet_keys();
        Some(KeyPair {
            local: Box::new(Payload(keys.local)),
            remote: Box::new(Payload(keys.remote)),
        })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        let Some((payload, tag)) = payload.split_last_chunk::<RETRY_TAG_LEN>() else {
            return false;
        };
        let packet = [header, payload].concat();
        // The tag is no secret: its key is published.
        retry_tag(self.version, orig_dst_cid, &packet) == *tag
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        let exported = self
            .tls
            .export_keying_material(output, label, Some(context));
        exported.map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

pub(super) fn initial_keys(
    version: Version,
    dst_cid: &ConnectionId,
    side: Side,
    suite: &Suite,
) -> Keys {
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    boxed_both(suite.keys(dst_cid, side, version))
}

fn boxed_both(keys: rustls::quic::Keys) -> Keys {
    let (local_header, local_packet) = boxed(keys.local);
    let (remote_header, remote_packet) = boxed(keys.remote);
    Keys {
        header: KeyPair {
            local: local_header,
            remote: remote_header,
        },
        packet: KeyPair {
            local: local_packet,
            remote: remote_packet,
        },
    }
}

fn boxed(keys: DirectionalKeys) -> (Box<dyn HeaderKey>, Box<dyn crypto::PacketKey>) {
    (
        Box::new(Header(keys.header)),
        Box::new(Payload(keys.packet)),
    )
}

const RETRY_TAG_LEN: usize = 16;

/// RFC 9001, section 5.8.
pub(super) fn retry_tag(
    version: Version,
    orig_dst_cid: &ConnectionId,
    packet: &[u8],
) -> [u8; RETRY_TAG_LEN] {
    let (key, nonce) = match version {
        Version::V1Draft => (
            0xccce_187e_d09a_09d0_5728_155a_6cb9_6be1_u128,
            *b"\xe5\x49\x30\xf9\x7f\x21\x36\xf0\x53\x0a\x8c\x1c",
        ),
        _ => (
            0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128,
            *b"\x46\x15\x99\xd3\x5d\x63\x2b\xf2\x23\x98\x25\xbb",
        ),
    };
    let length = u8::try_from(orig_dst_cid.len()).expect("at most 20 bytes");
    let pseudo_packet = [&[length], &orig_dst_cid[..], packet].concat();
    let mut tag = [0; RETRY_TAG_LEN];
    AesGcm::new(&key.to_be_bytes()).encrypt(&nonce, &pseudo_packet, &mut [], &mut tag);
    tag
}

struct Header(Box<dyn HeaderProtectionKey>);

impl Header {
    /// What of a packet is masked: sample, first byte, packet number.
    fn parts(packet: &mut [u8], pn_offset: usize, sample: usize) -> (&[u8], &mut u8, &mut [u8]) {
        // The sample begins where the payload would after the longest packet number.
        let (header, rest) = packet.split_at_mut(pn_offset + 4);
        let (first, header) = header.split_at_mut(1);
        (&rest[..sample], &mut first[0], &mut header[pn_offset - 1..])
    }
}

const SAMPLED: &str = "quinn-proto has seen to it that the packet is long enough";

impl HeaderKey for Header {
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let (sample, first, number) = Header::parts(packet, pn_offset, self.0.sample_len());
        self.0
            .decrypt_in_place(sample, first, number)
            .expect(SAMPLED);
    }

    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let (sample, first, number) = Header::parts(packet, pn_offset, self.0.sample_len());
        self.0
            .encrypt_in_place(sample, first, number)
            .expect(SAMPLED);
    }

    fn sample_size(&self) -> usize {
        self.0.sample_len()
    }
}

struct Payload(Box<dyn PacketKey>);

impl crypto::PacketKey for Payload {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (header, payload) = buf.split_at_mut(header_len);
        let (payload, storage) = payload.split_at_mut(payload.len() - self.0.tag_len());
        let tag = self.0.encrypt_in_place(packet, header, payload);
        storage.copy_from_slice(tag.expect("a packet is shorter than AEADs allow").as_ref());
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let text = self.0.decrypt_in_place(packet, header, payload);
        let length = text.map_err(|_| CryptoError)?.len();
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9001, appendix A.4.
    #[test]
    fn the_retry_of_the_rfc() {
        let cid = ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]);
        let packet = *b"\xff\x00\x00\x00\x01\x00\x08\xf0\x67\xa5\x50\x2a\x42\x62\xb5token";
        let tag = [
            0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24,
            0x96, 0xba,
        ];
        assert_eq!(retry_tag(Version::V1, &cid, &packet), tag);
    }
}
