//! The QUIC part of graviola's AES-GCM suites, which `rustls-graviola` leaves out: packet
//! protection (RFC 9001, section 5.3) by graviola, header protection (section 5.4.3) by `aes`, as
//! graviola does not expose the bare block cipher.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Aes256Enc};
use graviola::aead::AesGcm;
use rustls::crypto::CryptoProvider;
use rustls::crypto::cipher::{AeadKey, Iv, NONCE_LEN, Nonce};
use rustls::quic::{Algorithm, HeaderProtectionKey, PacketKey, Tag};
use rustls::{CipherSuite, Error, SupportedCipherSuite, Tls13CipherSuite};
use std::sync::LazyLock;

/// graviola's algorithms, for QUIC: TLS 1.3 with AES-128-GCM and AES-256-GCM.
///
/// ChaCha20-Poly1305 is left out: graviola needs a processor with instructions for AES anyway.
///
/// # Panics
///
/// The cryptography panics on processors that graviola does not support; `is_cpu_supported` of
/// graviola's `util` tells beforehand. On x86-64 it needs AES, PCLMULQDQ, AVX2, BMI2 and ADX, on
/// aarch64 AES and PMULL.
pub fn provider() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![
            SupportedCipherSuite::Tls13(&AES_128_GCM),
            SupportedCipherSuite::Tls13(&AES_256_GCM),
        ],
        ..rustls_graviola::default_provider()
    }
}

static AES_128_GCM: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    let suite = &rustls_graviola::suites::TLS13_AES_128_GCM_SHA256;
    with_quic(suite, &QuicAes(KeyBits::Aes128))
});

static AES_256_GCM: LazyLock<Tls13CipherSuite> = LazyLock::new(|| {
    let suite = &rustls_graviola::suites::TLS13_AES_256_GCM_SHA384;
    with_quic(suite, &QuicAes(KeyBits::Aes256))
});

fn with_quic(suite: &SupportedCipherSuite, quic: &'static dyn Algorithm) -> Tls13CipherSuite {
    let suite = suite.tls13().expect("a suite of TLS 1.3, by its name");
    Tls13CipherSuite {
        common: rustls::crypto::CipherSuiteCommon {
            suite: suite.common.suite,
            hash_provider: suite.common.hash_provider,
            confidentiality_limit: suite.common.confidentiality_limit,
        },
        hkdf_provider: suite.hkdf_provider,
        aead_alg: suite.aead_alg,
        quic: Some(quic),
    }
}

/// The suite of initial packets among those of `provider`, if that has it for QUIC.
pub(super) fn initial_suite(provider: &CryptoProvider) -> Option<rustls::quic::Suite> {
    provider
        .cipher_suites
        .iter()
        .filter(|suite| suite.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256)
        .find_map(|suite| suite.tls13()?.quic_suite())
}

#[derive(Clone, Copy)]
enum KeyBits {
    Aes128,
    Aes256,
}

struct QuicAes(KeyBits);

impl Algorithm for QuicAes {
    fn packet_key(&self, key: AeadKey, iv: Iv) -> Box<dyn PacketKey> {
        let cipher = AesGcm::new(key.as_ref());
        Box::new(GcmPacketKey { cipher, iv })
    }

    fn header_protection_key(&self, key: AeadKey) -> Box<dyn HeaderProtectionKey> {
        const LENGTH: &str = "rustls gives a key of `aead_key_len` bytes";
        match self.0 {
            KeyBits::Aes128 => Box::new(AesHeaderKey(
                Aes128Enc::new_from_slice(key.as_ref()).expect(LENGTH),
            )),
            KeyBits::Aes256 => Box::new(AesHeaderKey(
                Aes256Enc::new_from_slice(key.as_ref()).expect(LENGTH),
            )),
        }
    }

    fn aead_key_len(&self) -> usize {
        match self.0 {
            KeyBits::Aes128 => 16,
            KeyBits::Aes256 => 32,
        }
    }
}

struct GcmPacketKey {
    cipher: AesGcm,
    iv: Iv,
}

const TAG_LEN: usize = 16;

impl PacketKey for GcmPacketKey {
    fn encrypt_in_place(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Tag, Error> {
        let nonce = Nonce::new(&self.iv, packet_number);
        let mut tag = [0; TAG_LEN];
        self.cipher.encrypt(&nonce.0, header, payload, &mut tag);
        Ok(Tag::from(&tag[..]))
    }

    fn decrypt_in_place<'a>(
        &self,
        packet_number: u64,
        header: &[u8],
        payload: &'a mut [u8],
    ) -> Result<&'a [u8], Error> {
        let length = payload.len().checked_sub(TAG_LEN);
        let (text, tag) = payload.split_at_mut(length.ok_or(Error::DecryptError)?);
        let nonce = Nonce::new(&self.iv, packet_number);
        match self.cipher.decrypt(&nonce.0, header, text, tag) {
            Ok(()) => Ok(text),
            Err(_) => Err(Error::DecryptError),
        }
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    /// RFC 9001, section 6.6.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    /// RFC 9001, section 6.6.
    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

const _: () = assert!(NONCE_LEN == 12, "graviola's nonces have 12 bytes");

struct AesHeaderKey<C>(C);

const SAMPLE_LEN: usize = 16;

impl<C: BlockCipherEncrypt> AesHeaderKey<C> {
    /// RFC 9001, section 5.4.1.
    fn mask(&self, sample: &[u8]) -> Result<[u8; SAMPLE_LEN], Error> {
        let wrong = || Error::General("a sample of header protection has 16 bytes".into());
        let mut mask: [u8; SAMPLE_LEN] = sample.try_into().map_err(|_| wrong())?;
        let block = mask.as_mut_slice().try_into().map_err(|_| wrong())?;
        self.0.encrypt_block(block);
        Ok(mask)
    }

    fn apply(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
        masked: bool,
    ) -> Result<(), Error> {
        let mask = self.mask(sample)?;
        let (first_mask, number_mask) = (mask[0], &mask[1..5]);
        if packet_number.len() > number_mask.len() {
            return Err(Error::General("a packet number has at most 4 bytes".into()));
        }

        const LONG_HEADER: u8 = 0x80;
        let bits = if *first & LONG_HEADER != 0 {
            0x0f
        } else {
            0x1f
        };
        // The length of the packet number is in the unmasked first byte.
        let unmasked = if masked {
            *first ^ (first_mask & bits)
        } else {
            *first
        };
        let length = usize::from(unmasked & 0x03) + 1;

        *first ^= first_mask & bits;
        for (byte, mask) in packet_number.iter_mut().zip(number_mask).take(length) {
            *byte ^= mask;
        }
        Ok(())
    }
}

impl<C: BlockCipherEncrypt + Send + Sync> HeaderProtectionKey for AesHeaderKey<C> {
    fn encrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        self.apply(sample, first, packet_number, false)
    }

    fn decrypt_in_place(
        &self,
        sample: &[u8],
        first: &mut u8,
        packet_number: &mut [u8],
    ) -> Result<(), Error> {
        self.apply(sample, first, packet_number, true)
    }

    fn sample_len(&self) -> usize {
        SAMPLE_LEN
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::Side;
    use rustls::quic::{Keys, Version};

    /// RFC 9001, appendix A.2: the client's Initial, protected with the server's keys to open it.
    #[test]
    fn the_initial_packet_of_the_rfc() {
        let cid = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let suite = initial_suite(&provider()).expect("it is the first of ours");
        let client: Keys = suite.keys(&cid, Side::Client, Version::V1);

        let mut header = [
            0xc3, 0, 0, 0, 1, 8, 0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08, 0, 0, 0x44, 0x9e,
            0, 0, 0, 2,
        ];
        let mut payload = vec![0; 1162];
        let crypto = "060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868\
                      04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578\
                      616d706c652e636f6dff01000100000a00080006001d00170018001000070005\
                      04616c706e000500050100000000003300260024001d00209370b2c9caa47fba\
                      baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400\
                      0d0010000e0403050306030203080408050806002d00020101001c0002400100\
                      3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000\
                      75300901100f088394c8f03e51570806048000ffff";
        for (byte, pair) in payload.iter_mut().zip(crypto.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).expect("ASCII");
            *byte = u8::from_str_radix(pair, 16).expect("hexadecimal");
        }

        let local = &client.local;
        let plain = payload.clone();
        let tag = local.packet.encrypt_in_place(2, &header, &mut payload);
        let tag = tag.expect("it is short");
        assert_eq!(
            payload[..16],
            [
                0xd1, 0xb1, 0xc9, 0x8d, 0xd7, 0x68, 0x9f, 0xb8, 0xec, 0x11, 0xd2, 0x42, 0xb1, 0x23,
                0xdc, 0x9b,
            ]
        );
        assert_eq!(
            tag.as_ref(),
            [
                0xe2, 0x21, 0xaf, 0x44, 0x86, 0x00, 0x18, 0xab, 0x08, 0x56, 0x97, 0x2e, 0x19, 0x4c,
                0xd9, 0x34,
            ]
        );

        let (first, rest) = header.split_first_mut().expect("not empty");
        let number = &mut rest[17..];
        let protect = local.header.encrypt_in_place(&payload[..16], first, number);
        protect.expect("16 bytes, and a number of 4");
        assert_eq!(header[0], 0xc0);
        assert_eq!(header[18..], [0x7b, 0x9a, 0xec, 0x34]);

        // And back, by the other side.
        let server: Keys = suite.keys(&cid, Side::Server, Version::V1);
        let (first, rest) = header.split_first_mut().expect("not empty");
        let remote = &server.remote;
        let opened = remote
            .header
            .decrypt_in_place(&payload[..16], first, &mut rest[17..]);
        opened.expect("16 bytes, and a number of 4");
        assert_eq!((header[0], &header[18..]), (0xc3, &[0, 0, 0, 2][..]));
        payload.extend_from_slice(tag.as_ref());
        let mut copy = payload.clone();
        let opened = remote.packet.decrypt_in_place(2, &header, &mut copy);
        assert!(opened.expect("as it was sealed") == plain);
        payload[7] ^= 1;
        assert!(
            remote
                .packet
                .decrypt_in_place(2, &header, &mut payload)
                .is_err()
        );
    }

    /// RFC 9001, appendix A.1: a packet number of two bytes leaves the others as they are.
    #[test]
    fn a_short_packet_number() {
        let suite = initial_suite(&provider()).expect("it is the first of ours");
        let keys = suite.keys(&[0; 8], Side::Client, Version::V1);
        for length in 1..=4_u8 {
            let (mut first, mut number) = (0x40 | (length - 1), [1, 2, 3, 4]);
            let (was_first, was) = (first, number);
            let sample = [9; SAMPLE_LEN];
            let header = &keys.local.header;
            header
                .encrypt_in_place(&sample, &mut first, &mut number)
                .expect("16 bytes");
            assert_eq!(number[usize::from(length)..], was[usize::from(length)..]);
            assert_ne!(number[..usize::from(length)], was[..usize::from(length)]);
            header
                .decrypt_in_place(&sample, &mut first, &mut number)
                .expect("16 bytes");
            assert_eq!((first, number), (was_first, was));
            assert!(
                header
                    .decrypt_in_place(&sample[1..], &mut first, &mut number)
                    .is_err()
            );
        }
    }
}
