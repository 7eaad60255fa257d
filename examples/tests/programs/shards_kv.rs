//! The example `shards_kv`, and its clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::thread;

use crate::servers::Server;

fn start(shards: &str) -> Server {
    let arguments = ["--port", "0", "--shards", shards];
    Server::start(env!("CARGO_BIN_EXE_shards_kv"), &arguments)
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(server: &Server) -> Client {
        Client(BufReader::new(server.connect()))
    }

    fn send(&mut self, lines: &str) {
        self.0
            .get_mut()
            .write_all(lines.as_bytes())
            .expect("it listens");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("it answers");
        assert_eq!(line.pop(), Some('\n'), "a whole line");
        line
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(&format!("{line}\n"));
        self.answer()
    }
}

/// A key is where every connection finds it, whichever executor serves it.
#[test]
fn all_connections_see_the_same_keys() {
    let server = start("3");
    let mut clients: Vec<_> = (0..12).map(|_| Client::new(&server)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(
            client.ask(&format!("SET key{number} text of {number}")),
            "OK"
        );
    }
    for client in &mut clients {
        for number in 0..12 {
            assert_eq!(
                client.ask(&format!("GET key{number}")),
                format!("text of {number}")
            );
        }
    }
    assert_eq!(clients[0].ask("DEL key1"), "OK");
    assert_eq!(clients[1].ask("DEL key1"), "NONE");
    assert_eq!(clients[2].ask("GET key1"), "NONE");
    assert!(clients[3].ask("PUT key1").starts_with("ERROR"));
    drop(clients);
    let summary = server.interrupt();
    assert!(summary.starts_with("160 commands answered"), "{summary}");
    assert!(summary.contains("11 keys"), "{summary}");
}

/// Clients in the middle of their commands get the answers to all that was read, and then an end
/// instead of a reset.
#[test]
fn ending_leaves_no_command_half_answered() {
    let server = start("2");
    let silent = Client::new(&server);
    let talking = Barrier::new(4);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|number| {
                let (server, talking) = (&server, &talking);
                scope.spawn(move || {
                    let mut client = Client::new(server);
                    assert_eq!(client.ask(&format!("SET counter{number} 0")), "OK");
                    talking.wait();
                    // One command at a time, until the server has no more answers.
                    for count in 1_u64.. {
                        let line = format!("SET counter{number} {count}\n");
                        let is_sent = client.0.get_mut().write_all(line.as_bytes()).is_ok();
                        let mut answer = String::new();
                        // A command that came too late was not read: the answer is an end, or a
                        // reset.
                        match client.0.read_line(&mut answer) {
                            Ok(0) | Err(_) => return count,
                            Ok(_) => assert_eq!((is_sent, &*answer), (true, "OK\n")),
                        }
                    }
                    unreachable!("the numbers do not end")
                })
            })
            .collect();
        talking.wait();
        thread::sleep(std::time::Duration::from_millis(50));
        server.press_ctrl_c();
        for client in clients {
            assert!(client.join().expect("it ends well") > 0);
        }
    });
    // Who has said nothing is told of the end.
    let mut rest = Vec::new();
    let mut silent = silent.0;
    silent.read_to_end(&mut rest).expect("an end");
    assert!(rest.is_empty());
    let summary = server.ended();
    assert!(summary.contains("3 keys"), "{summary}");
}
