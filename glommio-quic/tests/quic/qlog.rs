//! Traces of connections.

use crate::peer::{Result, client_config, loopback, pair, run, server};
use glommio_quic::{Endpoint, QlogConfig, TransportConfig};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Trace(Arc<Mutex<Vec<u8>>>);

impl Write for Trace {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panics").write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_connection_leaves_a_trace_of_its_round_trips() -> Result {
    run(async {
        let trace = Trace::default();
        let mut qlog = QlogConfig::default();
        qlog.writer(Box::new(trace.clone()))
            .title(Some("a test".to_owned()));
        let mut transport = TransportConfig::default();
        transport.qlog_stream(qlog.into_stream());
        let mut config = client_config()?;
        config.transport_config(Arc::new(transport));
        let (server, client) = (server()?, Endpoint::client(loopback())?);
        client.set_default_client_config(config);
        let (accepted, connection) = pair(&server, &client).await?;
        let mut send = connection.open_uni().await?;
        send.write_all(b"one").await?;
        send.finish()?;
        assert_eq!(accepted.accept_uni().await?.read_to_end(3).await?, b"one");
        send.stopped().await?;
        let text = String::from_utf8(trace.0.lock().expect("no writer panics").clone())?;
        assert!(text.contains("a test"), "{text}");
        assert!(text.contains("recovery:metrics_updated"), "{text}");
        Ok(())
    })
}
