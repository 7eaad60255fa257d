//! What the head of each example shows: its commands are run, and have to print what stands there.
//!
//! A line that begins with `$` is a command for a shell, in an empty folder; one that begins with `^C`
//! stops the server before it. All others are what is printed, in which `..` stands for anything.
//! Servers are given any port, in place of the one that they are shown with.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::path::Path;
use std::process::Command;

use crate::servers::{Server, binary, connect};

/// The commands of a transcript, each with the lines that follow it.
fn commands(source: &str) -> Vec<(String, Vec<String>)> {
    let mut lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let mut commands = Vec::<(String, Vec<String>)>::new();
    while lines.by_ref().any(|line| line.trim() == "```console") {
        for line in lines.by_ref().take_while(|line| line.trim() != "```") {
            let line = line.strip_prefix(' ').unwrap_or(line);
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
                _ if line == "^C" => commands.push((line.to_owned(), Vec::new())),
                (None, Some((command, _))) if command.ends_with('\\') => {
                    command.pop();
                    command.push_str(line);
                }
                (None, Some((_, output))) => output.push(line.to_owned()),
                (None, None) => panic!("`{line}` before a command"),
            }
        }
    }
    commands
}

/// Whether `line` is `shown`, in which `..` stands for anything.
fn matches(line: &str, shown: &str) -> bool {
    let mut parts = shown.split("..");
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<_> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

fn assert_printed(name: &str, command: &str, printed: &str, shown: &[String]) {
    let lines: Vec<_> = printed.lines().collect();
    let is_shown = lines.len() == shown.len()
        && lines
            .iter()
            .zip(shown)
            .all(|(line, shown)| matches(line, shown));
    assert!(is_shown, "{name}: `{command}` has printed\n{printed}");
}

/// The program in place of `cargo run ..`, on any port.
fn with_program(command: &str) -> String {
    let Some((_, after)) = command.split_once("cargo run ") else {
        return command.to_owned();
    };
    let (_, after) = after.split_once("--bin ").expect("the name of a program");
    let (name, arguments) = after.split_once(" -- ").unwrap_or((after, ""));
    let path = binary(name);
    format!("{} {arguments}", path.to_str().expect("text"))
}

/// What a command prints.
fn shell(command: &str, folder: &Path) -> Vec<u8> {
    let mut bash = Command::new("bash");
    let run = bash.args(["-c", command]).current_dir(folder);
    let output = run.env_remove("GLOMMIO_SEED").output();
    output.expect("there is a shell").stdout
}

/// `sent | nc -N ..` and what is behind it, as not every machine has `nc`.
fn send(sent: &str, address: SocketAddr, behind: &str, folder: &Path) -> Vec<u8> {
    let mut client = connect(address);
    client.write_all(&shell(sent, folder)).expect("it reads");
    client.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).expect("it ends well");
    fs::write(folder.join("answer"), answer).expect("there is space");
    let behind = behind.split_once('|').map_or("", |it| it.1);
    shell(
        &format!(
            "cat answer | {}",
            if behind.is_empty() { "cat" } else { behind }
        ),
        folder,
    )
}

fn run(name: &str, source: &str) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("there is space");
    let mut server: Option<(Server, String)> = None;
    let mut earlier = Vec::new();
    for (written, shown) in commands(source) {
        let ours = |text: &str| match &server {
            Some((server, port)) => text.replace(port, &server.address.port().to_string()),
            None => text.to_owned(),
        };
        let command = with_program(&ours(&written));
        let expected: Vec<_> = shown.iter().map(|line| ours(line)).collect();
        if command == "^C" {
            let (server, _) = server.take().expect("a server");
            assert_printed(name, &command, &server.interrupt(), &expected);
        } else if let Some(address) = shown
            .first()
            .and_then(|it| it.strip_prefix("listening on "))
        {
            let port = address.rsplit(':').next().expect("a port").to_owned();
            let anywhere = command.replace(&format!("--port {port}"), "--port 0");
            let enter = format!("cd {}; exec {anywhere}", folder.path().display());
            let next = Server::start("bash", &["-c", &enter]);
            // One that hands over to the next ends by itself.
            earlier.extend(server.replace((next, port)));
        } else {
            let printed = match command.split_once("| nc -N ") {
                Some((sent, to)) => {
                    let (server, _) = server.as_ref().expect("a server");
                    send(sent, server.address, to, folder.path())
                }
                None => shell(&command, folder.path()),
            };
            let printed = String::from_utf8(printed).expect("text");
            assert_printed(name, &command, &printed, &expected);
        }
    }
}

/// Each example that this was built with.
#[test]
fn the_programs_print_what_their_heads_show() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bin");
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the sources") {
        let path = entry.expect("it can be read").path();
        let name = path.file_stem().and_then(|it| it.to_str()).expect("text");
        let source = if path.is_dir() {
            path.join("main.rs")
        } else {
            path.clone()
        };
        let source = fs::read_to_string(source).expect("the sources");
        let is_left_out = name == "metrics" && cfg!(not(feature = "metrics"))
            || name == "simulated_broker" && cfg!(not(feature = "simulation"))
            || name == "axum_server" && cfg!(not(feature = "http3"));
        if !is_left_out {
            assert!(!commands(&source).is_empty(), "{name} shows nothing");
            run(name, &source);
            count += 1;
        }
    }
    assert!(count >= 15, "{count} examples");
}

#[test]
fn dots_stand_for_anything() {
    assert!(matches("9 primes in 1.2ms", "9 primes in .."));
    assert!(matches("a 1 b 2 c", "a .. b .. c"));
    assert!(!matches("a 1 c", "a .. b .. c"));
    assert!(!matches("none", "non"));
}
