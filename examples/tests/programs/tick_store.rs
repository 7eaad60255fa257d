//! The example `tick_store`, as a process that is killed.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::servers::Server;

fn start(folder: &std::path::Path) -> Server {
    Server::of("tick_store", &[folder.to_str().expect("a path of letters")])
}

/// The lines up to the one that ends an answer, which is one of them.
fn ask(client: &TcpStream, commands: &str, ends: usize) -> Vec<String> {
    let mut writer = client;
    writer.write_all(commands.as_bytes()).expect("it reads");
    let mut lines = BufReader::new(client).lines();
    let mut answer = Vec::new();
    let mut ended = 0;
    while ended < ends {
        let line = lines.next().expect("it answers").expect("text");
        ended += usize::from(
            ["OK", "END", "COUNT", "ERROR"]
                .iter()
                .any(|it| line.starts_with(it)),
        );
        answer.push(line);
    }
    answer
}

#[test]
fn ranges_are_answered() {
    let folder = tempfile::tempdir().expect("the disk has room");
    let server = start(folder.path());
    let client = server.connect();
    let trades =
        "PUT A 1700 10060 1\nPUT B 1000 10050 3\nPUT LONGNAME 2500 10040 2\nPUT A -1 5 7\n";
    // Of two shards, each with numbers of its own.
    assert!(
        ask(&client, trades, 4)
            .iter()
            .all(|it| it.starts_with("OK "))
    );
    let range = ask(&client, "RANGE 0 2000\n", 1);
    assert_eq!(range, ["1000 B 10050 3", "1700 A 10060 1", "END 2"]);
    let several = ask(
        &client,
        "DELETE 0 1500\nCOUNT 0 9000\nRANGE 9 1\nDELETE 9 1\n",
        4,
    );
    assert_eq!(several[..3], ["OK", "COUNT 2", "END 0"]);
    assert!(several[3].starts_with("ERROR the range"), "{several:?}");
    for nonsense in [
        "\n",
        "PUT 1 2\n",
        "PUT A 1 2\n",
        "PUT A 1 2 -3\n",
        "PUT NINEBYTES 1 2 3\n",
        "PUT a b c d\n",
        "x y\n",
    ] {
        let answer = ask(&client, nonsense, 1);
        assert!(
            answer[0].starts_with("ERROR this wants"),
            "{nonsense} {answer:?}"
        );
    }
    // A line that is longer than any command ends the connection, and nothing else.
    let other = server.connect();
    let _ = (&other).write_all(&[b'9'; 10_000]);
    let mut rest = String::new();
    let _ = BufReader::new(&other).read_line(&mut rest);
    assert_eq!(ask(&client, "COUNT 0 9000\n", 1), ["COUNT 2"]);
    assert_eq!(server.interrupt(), "closed\n");
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("the disk has room");
    let mut acknowledged = 0_i64;
    for round in 1..=3 {
        let server = start(folder.path());
        let client = server.connect();
        let count = ask(&client, "COUNT 0 1000000\n", 1);
        let count: i64 = count[0]
            .strip_prefix("COUNT ")
            .expect("a count")
            .parse()
            .expect("a number");
        assert!(count >= acknowledged, "{count} of {acknowledged}");
        // Many under way at once; killed in the middle of them.
        let first = count;
        let commands: String = (first..first + 500)
            .map(|ts| format!("PUT ROUND{round} {ts} {ts} 1\n"))
            .collect();
        ask(&client, &commands, 100 * round);
        acknowledged = first + 100 * round as i64;
        drop(server);
    }
    let server = start(folder.path());
    let rows = ask(&server.connect(), "RANGE 0 1000000\n", 1);
    assert!(
        rows.len() as i64 > acknowledged,
        "{} of {acknowledged}",
        rows.len()
    );
    for (ts, row) in rows[..rows.len() - 1].iter().enumerate() {
        let is_next = row.starts_with(&format!("{ts} ROUND")) && row.ends_with(&format!(" {ts} 1"));
        assert!(is_next, "{row}: without gaps, in order");
    }
}
