//! The content types of TLS records (RFC 8446, section 5.1), as
//! [`TcpStream::recv_tls_record`](crate::net::TcpStream::recv_tls_record) returns them.

/// A cipher change (20), which TLS 1.3 sends for the sake of old devices on the way alone.
pub const CHANGE_CIPHER_SPEC: u8 = 20;

/// An alert (21): an error, or the end of the stream.
pub const ALERT: u8 = 21;

/// A message of the handshake (22), such as a session ticket or a new key.
pub const HANDSHAKE: u8 = 22;

/// Data of the application (23).
pub const APPLICATION_DATA: u8 = 23;
