//! Names, resolved by a server of this program that answers each question in the same way.

use std::net::{IpAddr, Ipv4Addr};

use glommio::net::UdpSocket;
use glommio::spawn_local;
use glommio_tokio::with_tokio;
use hickory_resolver::Resolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;

use crate::Result;

/// An answer to `question`: the address 192.0.2.1.
fn answer(question: &[u8]) -> Vec<u8> {
    // The name, to its root, the type and the class.
    let name = question[12..]
        .iter()
        .position(|&it| it == 0)
        .expect("a root");
    let end = 12 + name + 5;
    let mut answer = question[..end].to_vec();
    answer[2] |= 0x80; // a response
    let is_address = question[end - 4..end - 2] == [0, 1];
    // One answer, no authorities, nothing additional.
    answer[6..12].copy_from_slice(&[0, u8::from(is_address), 0, 0, 0, 0]);
    if is_address {
        // The name at offset 12, type A, class IN, an hour, four bytes.
        answer.extend([0xC0, 12, 0, 1, 0, 1, 0, 0, 0x0E, 0x10, 0, 4, 192, 0, 2, 1]);
    }
    answer
}

pub async fn hickory_resolver() -> Result<String> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let port = socket.local_addr()?.port();
    spawn_local(async move {
        let mut buffer = [0; 512];
        while let Ok((count, from)) = socket.recv_from(&mut buffer).await {
            let _ = socket.send_to(&answer(&buffer[..count]), from).await;
        }
    })
    .detach();
    with_tokio(async move {
        let mut connection = ConnectionConfig::udp();
        connection.port = port;
        let server =
            NameServerConfig::new(IpAddr::from(Ipv4Addr::LOCALHOST), true, vec![connection]);
        let config = ResolverConfig::from_name_servers(vec![server]);
        let resolver =
            Resolver::builder_with_config(config, TokioRuntimeProvider::default()).build()?;
        let found = resolver.lookup_ip("name.example.").await?;
        let address = found.iter().next().ok_or("there is none")?;
        Ok(address.to_string())
    })
    .await
}
