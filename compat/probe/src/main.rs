//! `probe ADDRESS PATH`: opens a WebSocket, and has a text echoed.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: probe ADDRESS PATH".into());
    };
    let mut stream = TcpStream::connect(&address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head)?;
    // The answer to this key in RFC 6455.
    let is_accepted =
        head.starts_with("HTTP/1.1 101") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    if !is_accepted {
        return Err(format!("the upgrade was not accepted: {head}").into());
    }
    for text in ["hello", "by", "WebSocket"] {
        // A client masks what it sends; this mask changes nothing.
        let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
        frame.extend_from_slice(text.as_bytes());
        stream.write_all(&frame)?;
        let mut echo = vec![0; 2 + text.len()];
        stream.read_exact(&mut echo)?;
        if echo[..2] != [0x81, text.len() as u8] || &echo[2..] != text.as_bytes() {
            return Err(format!("`{text}` came back as {echo:?}").into());
        }
    }
    println!("WebSocket echo ok");
    Ok(())
}
