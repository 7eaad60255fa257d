//! Keys of what an endpoint hands out and later recognizes: stateless resets, retry tokens.

use super::fill_random;
use graviola::aead::AesGcm;
use graviola::hashing::Sha256;
use graviola::hashing::hmac::Hmac;
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};

/// Signs stateless resets (RFC 9000, section 10.3), by HMAC-SHA-256.
///
/// With the same key an endpoint can reset connections that it had before it was restarted: see
/// [`endpoint_config_with`](super::endpoint_config_with) and
/// [`ShardOptions::reset_key`](crate::ShardOptions::reset_key).
#[derive(Clone)]
pub struct ResetKey(Hmac<Sha256>);

impl ResetKey {
    /// From 32 secret bytes.
    pub fn new(secret: &[u8; 32]) -> ResetKey {
        ResetKey(Hmac::new(secret))
    }

    /// With a new secret.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn random() -> Result<ResetKey, rustls::Error> {
        let mut secret = [0; 32];
        fill_random(&mut secret)?;
        Ok(ResetKey::new(&secret))
    }

    fn hmac(&self, data: &[u8]) -> Hmac<Sha256> {
        let mut hmac = self.0.clone();
        hmac.update(data);
        hmac
    }
}

const SIGNATURE_LEN: usize = 32;

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        signature_out.copy_from_slice(self.hmac(data).finish().as_ref());
    }

    fn signature_len(&self) -> usize {
        SIGNATURE_LEN
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        self.hmac(data).verify(signature).map_err(|_| CryptoError)
    }
}

/// Seals the tokens by which clients prove that they receive at their address (RFC 9000, section
/// 8.1), each by AES-256-GCM under a key of its own, derived by HKDF-SHA-256 (RFC 5869).
#[derive(Clone)]
pub struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    /// From 32 secret bytes, which stand for the pseudorandom key of HKDF.
    pub fn new(secret: &[u8; 32]) -> TokenKey {
        TokenKey(Hmac::new(secret))
    }

    /// With a new secret.
    ///
    /// # Errors
    ///
    /// The system has no random bytes.
    pub fn random() -> Result<TokenKey, rustls::Error> {
        let mut secret = [0; 32];
        fill_random(&mut secret)?;
        Ok(TokenKey::new(&secret))
    }
}

impl HandshakeTokenKey for TokenKey {
    fn aead_from_hkdf(&self, random_bytes: &[u8]) -> Box<dyn AeadKey> {
        // The first block of HKDF-Expand, which is as long as the key.
        let mut hmac = self.0.clone();
        hmac.update(random_bytes);
        hmac.update([1]);
        Box::new(TokenAead(AesGcm::new(hmac.finish().as_ref())))
    }
}

struct TokenAead(AesGcm);

/// Each key seals one token.
const NONCE: [u8; 12] = [0; 12];
const TAG_LEN: usize = 16;

impl AeadKey for TokenAead {
    fn seal(&self, data: &mut Vec<u8>, additional_data: &[u8]) -> Result<(), CryptoError> {
        let mut tag = [0; TAG_LEN];
        self.0.encrypt(&NONCE, additional_data, data, &mut tag);
        data.extend_from_slice(&tag);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        let (text, tag) = data.split_at_mut(length);
        match self.0.decrypt(&NONCE, additional_data, text, tag) {
            Ok(()) => Ok(text),
            Err(_) => Err(CryptoError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_opened_by_its_own_key_only() {
        let key = TokenKey::new(&[7; 32]);
        let mut token = b"address".to_vec();
        key.aead_from_hkdf(b"one")
            .seal(&mut token, b"aad")
            .expect("it is short");
        assert_ne!(&token[..7], b"address");

        let open = |random: &[u8], aad: &[u8], mut token: Vec<u8>| {
            let opened = key.aead_from_hkdf(random);
            opened.open(&mut token, aad).map(|text| text.to_vec()).ok()
        };
        assert_eq!(
            open(b"one", b"aad", token.clone()).as_deref(),
            Some(&b"address"[..])
        );
        assert_eq!(open(b"two", b"aad", token.clone()), None);
        assert_eq!(open(b"one", b"bad", token.clone()), None);
        assert_eq!(open(b"one", b"aad", token[..15].to_vec()), None);
        token[3] ^= 1;
        assert_eq!(open(b"one", b"aad", token), None);
    }

    #[test]
    fn a_reset_is_verified_by_its_key() {
        let (key, other) = (ResetKey::new(&[1; 32]), ResetKey::new(&[2; 32]));
        let mut signature = [0; SIGNATURE_LEN];
        key.sign(b"cid", &mut signature);
        assert!(key.verify(b"cid", &signature).is_ok());
        assert!(key.verify(b"dic", &signature).is_err());
        assert!(other.verify(b"cid", &signature).is_err());
    }
}
