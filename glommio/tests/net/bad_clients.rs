//! A server with good clients and bad ones.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::spawn_local;

use super::hostile::{pattern, reset};
use super::{PATIENCE, Result, run};

/// What a bad client does to a server.
#[derive(Clone, Copy, Debug)]
enum Mischief {
    ResetsInTheQueue,
    ResetsInTheMiddle,
    SaysNothing,
    NeverReads,
    Dribbles,
    EndsItsHalf,
}

impl Mischief {
    fn start(self, server: SocketAddr) -> io::Result<()> {
        use std::net::TcpStream;
        let mut client = TcpStream::connect(server)?;
        match self {
            Mischief::ResetsInTheQueue => reset(client),
            Mischief::ResetsInTheMiddle => {
                client.write_all(&[1; 7])?;
                client.read_exact(&mut [0; 3])?;
                reset(client);
            }
            Mischief::SaysNothing => {
                let _end = client.read(&mut [0; 1]);
            }
            Mischief::NeverReads => while client.write(&[2; 10_000]).is_ok() {},
            Mischief::Dribbles => {
                while client.write(&[3]).is_ok() {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            Mischief::EndsItsHalf => {
                client.write_all(&[4; 100])?;
                client.shutdown(Shutdown::Write)?;
                let mut all = Vec::new();
                client.read_to_end(&mut all)?;
                assert_eq!(all, [4; 100]);
            }
        }
        Ok(())
    }
}

/// Each bad client has a thread; fifty good ones come at the same time, and all of them are served.
#[test]
fn bad_clients_keep_no_good_one_from_being_served() {
    const GOOD: usize = 50;
    const ROUNDS: usize = 20;
    let bad = [
        Mischief::ResetsInTheQueue,
        Mischief::ResetsInTheMiddle,
        Mischief::SaysNothing,
        Mischief::NeverReads,
        Mischief::Dribbles,
        Mischief::EndsItsHalf,
    ];
    let bad_clients = run(async {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let server = spawn_local(async move {
            loop {
                if let Ok(stream) = listener.accept().await {
                    spawn_local(echo(stream)).detach();
                }
            }
        });
        let bad_clients: Vec<_> = bad
            .into_iter()
            .map(|mischief| {
                (
                    mischief,
                    std::thread::spawn(move || mischief.start(address)),
                )
            })
            .collect();
        let good_clients: Vec<_> = (0..GOOD)
            .map(|number| {
                spawn_local(async move {
                    let mut client = TcpStream::connect(address).await?;
                    for round in 0..ROUNDS {
                        let message = pattern(number * ROUNDS + round, 1 + number);
                        client.write_all(&message).await?;
                        let mut answer = vec![0; message.len()];
                        client.read_exact(&mut answer).await?;
                        assert_eq!(answer, message);
                    }
                    client.close().await?;
                    assert_eq!(client.read(&mut [0; 1]).await?, 0);
                    Result::Ok(())
                })
            })
            .collect();
        for client in good_clients {
            client.await?;
        }
        server.cancel().await;
        Ok(bad_clients)
    });
    // The server is gone, and with it what kept them busy.
    for (mischief, client) in bad_clients {
        let done = client.join().expect("no panic");
        if let Mischief::EndsItsHalf = mischief {
            done.expect("it has done nothing wrong");
        }
    }
}

/// Says back what it hears, to the end.
async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE / 2))?;
    let mut buf = [0; 4096];
    loop {
        match stream.read(&mut buf).await? {
            0 => return stream.close().await,
            count => stream.write_all(&buf[..count]).await?,
        }
    }
}
