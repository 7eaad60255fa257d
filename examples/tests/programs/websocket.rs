//! The example `websocket`, asked by a client that knows nothing of hyper.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::servers::Server;
use async_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use async_tungstenite::tungstenite::{Message, WebSocket, client};

fn start(arguments: &[&str]) -> Server {
    Server::of("websocket", arguments)
}

fn converse(server: &Server) -> WebSocket<TcpStream> {
    let url = format!("ws://{}/echo", server.address);
    let (socket, response) = client(url, server.connect()).expect("it speaks WebSocket");
    assert_eq!(response.status(), 101);
    socket
}

/// Asks for one thing, and reads to the end.
fn ask(server: &Server, path: &str) -> String {
    let mut stream = server.connect();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}

#[test]
fn messages_are_echoed() {
    let server = start(&[]);
    let mut sockets = [converse(&server), converse(&server)];
    for n in 0..10 {
        for (at, socket) in sockets.iter_mut().enumerate() {
            let message = Message::text(format!("{n} to {at}"));
            socket.send(message.clone()).expect("it reads");
            assert_eq!(socket.read().expect("it answers"), message);
        }
    }
    let message = Message::binary(crate::servers::noise(1 << 20));
    sockets[0].send(message.clone()).expect("it reads");
    assert_eq!(sockets[0].read().expect("it answers"), message);
    for mut socket in sockets {
        socket.close(None).expect("it reads");
        while socket.read().is_ok() {}
    }
    let last = server.interrupt();
    assert_eq!(last, "ended, with 0 connections cut off\n");
}

/// Beside the WebSockets there is an ordinary server.
#[test]
fn other_requests_are_answered() {
    let server = start(&[]);
    assert!(ask(&server, "/").contains("new WebSocket("));
    assert!(ask(&server, "/echo").starts_with("HTTP/1.1 426 "));
    assert!(ask(&server, "/other").starts_with("HTTP/1.1 404 "));
    server.interrupt();
}

#[test]
fn ctrl_c_says_goodbye_to_websockets() {
    let server = start(&["--grace", "60s"]);
    let mut socket = converse(&server);
    server.press_ctrl_c();
    let Message::Close(Some(frame)) = socket.read().expect("a goodbye") else {
        panic!("something else than a close");
    };
    assert_eq!(frame.code, CloseCode::Away);
    // The library confirms it, and then the server ends.
    while socket.read().is_ok() {}
    assert_eq!(server.ended(), "ended, with 0 connections cut off\n");
}

/// A client that does not confirm the goodbye is cut off after the grace.
#[test]
fn a_client_that_ignores_the_goodbye_is_cut_off() {
    let server = start(&["--grace", "50ms"]);
    let socket = converse(&server);
    assert_eq!(server.interrupt(), "ended, with 1 connections cut off\n");
    drop(socket);
}
