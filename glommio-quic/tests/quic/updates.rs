//! Key updates, as the TLS session of a server sees them.

use crate::peer::{Result, client, loopback, pair, run, server_config};
use glommio_quic::quinn_proto::crypto::{
    ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use glommio_quic::quinn_proto::transport_parameters::TransportParameters;
use glommio_quic::quinn_proto::{ConnectionId, Side, TransportError};
use glommio_quic::{Connection, Endpoint};
use std::any::Any;
use std::result::Result as StdResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts how often its sessions make the next keys.
#[derive(Clone)]
struct Counting<T> {
    inner: T,
    made: Arc<AtomicUsize>,
}

impl ServerConfig for Counting<Arc<dyn ServerConfig>> {
    fn initial_keys(&self, version: u32, id: &ConnectionId) -> StdResult<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, id)
    }

    fn retry_tag(&self, version: u32, id: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn Session> {
        let inner = Arc::clone(&self.inner).start_session(version, parameters);
        let made = Arc::clone(&self.made);
        Box::new(Counting { inner, made })
    }
}

impl Session for Counting<Box<dyn Session>> {
    fn initial_keys(&self, id: &ConnectionId, side: Side) -> Keys {
        self.inner.initial_keys(id, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> StdResult<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> StdResult<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.inner.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.made.fetch_add(1, Ordering::Relaxed);
        self.inner.next_1rtt_keys()
    }

    fn is_valid_retry(&self, id: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> StdResult<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}

/// One byte there and back.
async fn exchange(from: &Connection, to: &Connection) -> Result {
    for (from, to) in [(from, to), (to, from)] {
        let mut send = from.open_uni().await?;
        send.write_all(b"a").await?;
        send.finish()?;
        assert_eq!(to.accept_uni().await?.read_to_end(1).await?, b"a");
    }
    Ok(())
}

#[test]
fn an_update_of_keys_that_is_forced_reaches_the_peer() -> Result {
    run(async {
        let (mut config, made) = (server_config()?, Arc::new(AtomicUsize::new(0)));
        config.crypto = Arc::new(Counting {
            inner: Arc::clone(&config.crypto),
            made: Arc::clone(&made),
        });
        let (server, client) = (Endpoint::server(config, loopback())?, client()?);
        let (accepted, connection) = pair(&server, &client).await?;
        exchange(&connection, &accepted).await?;
        let before = made.load(Ordering::Relaxed);
        exchange(&connection, &accepted).await?;
        assert_eq!(made.load(Ordering::Relaxed), before, "without an update");
        connection.force_key_update();
        exchange(&connection, &accepted).await?;
        assert_eq!(made.load(Ordering::Relaxed), before + 1);
        Ok(())
    })
}
