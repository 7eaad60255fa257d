//! The example `broker`, and clients that are nothing but sockets. The soak has clients with a hundred thousand messages in
//! flight.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::servers::Server;

fn start(arguments: &[&str]) -> Server {
    Server::of("broker", arguments)
}

/// A client, by the table in `protocol.rs`.
struct Client(TcpStream);

impl Client {
    fn new(server: &Server) -> Client {
        Client(server.connect())
    }

    fn send(&mut self, frame: &[&[u8]]) {
        let frame = frame.concat();
        let length = (frame.len() as u32).to_le_bytes();
        let bytes = [&length[..], &frame].concat();
        self.0.write_all(&bytes).expect("the broker reads");
    }

    fn publish(&mut self, topic: &str, number: u64, payload: &[u8]) {
        let number = number.to_le_bytes();
        self.send(&[b"P", &name(topic), &number, payload]);
    }

    fn subscribe(&mut self, topic: &str, group: &str, credit: u32) {
        let credit = credit.to_le_bytes();
        self.send(&[b"S", &name(topic), &name(group), &credit]);
    }

    fn ack(&mut self, delivery: [u8; 8]) {
        self.send(&[b"A", &delivery]);
    }

    fn receive(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("a frame comes");
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut frame).expect("all of it comes");
        frame
    }

    /// The next frame, which has to be a delivery: what names it, its attempt, and its payload.
    fn delivery(&mut self) -> ([u8; 8], u16, String) {
        let frame = self.receive();
        assert_eq!(frame[0], b'D', "{frame:?}");
        let attempt = u16::from_le_bytes([frame[9], frame[10]]);
        let payload = String::from_utf8(frame[11..].to_vec()).expect("text");
        (frame[1..9].try_into().expect("8 bytes"), attempt, payload)
    }

    fn expect(&mut self, kind: u8, fields: &[&[u8]]) {
        assert_eq!(self.receive(), [&[kind][..], &fields.concat()].concat());
    }

    /// Publishes and waits until the broker has confirmed it.
    fn publish_confirmed(&mut self, topic: &str, payload: &str) {
        self.publish(topic, 77, payload.as_bytes());
        self.expect(b'C', &[&77_u64.to_le_bytes()]);
    }
}

fn name(text: &str) -> Vec<u8> {
    [&[text.len() as u8][..], text.as_bytes()].concat()
}

/// Each of `counts` is part of what was printed.
fn assert_counts(printed: &str, counts: &[&str]) {
    for count in counts {
        assert!(printed.contains(count), "no `{count}`: {printed}");
    }
}

/// Without an ack a message comes again, not before its deadline, until it is a dead letter. What
/// was acknowledged does not.
#[test]
fn without_an_ack_a_message_comes_again_and_then_is_a_dead_letter() {
    const DEADLINE: Duration = Duration::from_secs(1);
    let server = start(&["--ack-deadline", "1s", "--attempts", "3"]);
    let mut publisher = Client::new(&server);
    let mut consumer = Client::new(&server);
    let mut undertaker = Client::new(&server);
    consumer.subscribe("jobs", "workers", 10);
    undertaker.subscribe("jobs.dead", "undertakers", 10);
    let begin = Instant::now();
    publisher.publish_confirmed("jobs", "kept");
    publisher.publish_confirmed("jobs", "poison");
    let (kept, attempt, payload) = consumer.delivery();
    assert_eq!((attempt, &*payload), (1, "kept"));
    consumer.ack(kept);
    let (first, attempt, payload) = consumer.delivery();
    assert_eq!((attempt, &*payload), (1, "poison"));
    consumer.expect(b'K', &[&kept, &[1]]);
    for again in [2, 3] {
        let (delivery, attempt, payload) = consumer.delivery();
        assert!(begin.elapsed() >= DEADLINE * (again - 1), "too early");
        assert_eq!((u32::from(attempt), &*payload), (again, "poison"));
        assert_ne!(delivery, first, "each delivery has a name of its own");
    }
    // The third delivery is not acknowledged by the name of the first one.
    consumer.ack(first);
    consumer.expect(b'K', &[&first, &[0]]);
    let (dead, attempt, payload) = undertaker.delivery();
    assert!(begin.elapsed() >= DEADLINE * 3, "too early");
    assert_eq!((attempt, &*payload), (1, "poison"));
    // A dead letter does not die again.
    undertaker.ack(dead);
    undertaker.expect(b'K', &[&dead, &[1]]);
    // An ack that comes too late has no effect.
    consumer.ack(first);
    consumer.expect(b'K', &[&first, &[0]]);
    assert_counts(
        &server.interrupt(),
        &["redelivered 2, acked 2, late acks 2, dead 1, in flight 0, waiting 0"],
    );
}

/// Each group gets every message, and within a group each comes to one consumer, which gets no
/// more than its credit. What a consumer leaves behind goes to another one, and acks of others'
/// deliveries do not count.
#[test]
fn groups_and_credit_decide_which_consumer_gets_a_message() {
    let server = start(&["--ack-deadline", "3s", "--attempts", "1000"]);
    let mut publisher = Client::new(&server);
    publisher.publish_confirmed("news", "early");
    let mut alone = Client::new(&server);
    alone.subscribe("news", "one", 100);
    assert_eq!(alone.delivery().2, "early", "it waits for the first group");
    let mut pair = [Client::new(&server), Client::new(&server)];
    for member in &mut pair {
        member.subscribe("news", "two", 1);
        // Answered after the subscription was taken.
        member.publish_confirmed("elsewhere", "ping");
    }
    for text in ["a", "b"] {
        publisher.publish_confirmed("news", text);
    }
    let mut of_pair = pair.each_mut().map(Client::delivery);
    let foreign = of_pair[0].0;
    pair[1].ack(foreign);
    pair[1].expect(b'K', &[&foreign, &[0]]);
    of_pair.sort_by(|a, b| a.2.cmp(&b.2));
    assert_eq!(of_pair.map(|it| it.2), ["a", "b"], "one each");
    let mut of_alone: Vec<String> = Vec::new();
    while of_alone.len() < 2 {
        let (_, attempt, payload) = alone.delivery();
        if attempt == 1 && payload != "early" {
            of_alone.push(payload);
        }
    }
    assert_eq!(of_alone, ["a", "b"]);
    // One of the two leaves: the other one gets what it held, after the deadline.
    let [leaves, mut stays] = pair;
    drop(leaves);
    let mut seen = Vec::new();
    while !(seen.contains(&"a".to_owned()) && seen.contains(&"b".to_owned())) {
        let (delivery, attempt, payload) = stays.delivery();
        assert!(attempt > 1);
        stays.ack(delivery);
        // It may be late if this machine is busy; then it comes again.
        let answer = stays.receive();
        assert_eq!(answer[..9], [b"K", &delivery[..]].concat());
        if answer[9] == 1 {
            seen.push(payload);
        }
    }
}

/// At Ctrl-C what is in flight may still be acknowledged, publishes are refused, and what is lost is
/// counted.
#[test]
fn a_shutdown_waits_for_what_is_in_flight() {
    let server = start(&["--ack-deadline", "5s"]);
    let (mut publisher, mut consumer) = (Client::new(&server), Client::new(&server));
    consumer.subscribe("jobs", "workers", 2);
    for text in ["0", "1", "2", "3"] {
        publisher.publish_confirmed("jobs", text);
    }
    let (first, second) = (consumer.delivery(), consumer.delivery());
    assert_eq!([&*first.2, &*second.2], ["0", "1"]);
    server.press_ctrl_c();
    // Until the signal has arrived, publishes are confirmed, and are not delivered either.
    let mut waiting = 3;
    loop {
        publisher.publish("jobs", 5, b"late");
        match publisher.receive()[0] {
            b'C' => waiting += 1,
            b'R' => break,
            kind => panic!("frame {kind}"),
        }
    }
    consumer.ack(first.0);
    consumer.expect(b'K', &[&first.0, &[1]]);
    // The broker waits for the other ack, in vain, and then ends.
    let mut rest = Vec::new();
    consumer.0.read_to_end(&mut rest).expect("it ends well");
    assert_eq!(rest, b"", "nothing is delivered any more");
    let left = format!("in flight 0, waiting {waiting}");
    assert_counts(&server.ended(), &["acked 1", &left]);
}

/// A client that sends what is no frame is disconnected, and others are not.
#[test]
fn nonsense_ends_its_connection_alone() {
    let server = start(&[]);
    let mut good = Client::new(&server);
    // Once it is answered, the server has all of its own.
    good.publish("other", 1, b"");
    good.expect(b'C', &[&1_u64.to_le_bytes()]);
    let before = server.descriptors();
    for nonsense in [
        &b"\xff\xff\xff\xff"[..],
        b"\x01\0\0\0X",
        b"\0\0\0\0",
        b"\x02\0\0\0S\x09",
    ] {
        let mut client = server.connect();
        client.write_all(nonsense).expect("the broker reads");
        let mut rest = Vec::new();
        // The end or a reset.
        let _ = client.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    server.await_descriptors(before);
    good.subscribe("t", "g", 1);
    good.publish("t", 1, b"still here");
    let (delivery, _, payload) = good.delivery();
    assert_eq!(payload, "still here");
    good.expect(b'C', &[&1_u64.to_le_bytes()]);
    good.ack(delivery);
    good.expect(b'K', &[&delivery, &[1]]);
    assert_counts(&server.interrupt(), &["acked 1"]);
}
