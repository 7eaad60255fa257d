//! The examples that are about files, each as a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::servers::noise;
use tempfile::TempDir;

/// On the disk that has the target directory.
fn folder() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("cargo made it")
}

fn run(binary: &str, arguments: &[&str]) -> Output {
    let output = Command::new(binary).args(arguments).output();
    output.expect("the binary was built for this test")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our own names are UTF-8")
}

/// Lengths around those of blocks, alignments and nothing at all.
const LENGTHS: [usize; 6] = [0, 1, 4096, 100_000, (512 << 10) + 1, 9 << 20];

#[test]
fn cat_shows_files_of_any_length_one_after_the_other() {
    let folder = folder();
    let mut expected = Vec::new();
    let mut paths = Vec::new();
    for length in LENGTHS {
        let path = folder.path().join(format!("file-{length}"));
        fs::write(&path, noise(length)).expect("there is room");
        expected.extend(noise(length));
        paths.push(path);
    }
    let arguments: Vec<&str> = paths.iter().map(|path| text(path)).collect();
    let shown = run(env!("CARGO_BIN_EXE_cat"), &arguments);
    assert!(shown.status.success());
    assert!(shown.stdout == expected, "{} bytes", shown.stdout.len());
}

#[test]
fn cat_shows_what_has_no_size() {
    let shown = run(env!("CARGO_BIN_EXE_cat"), &["/proc/self/status"]);
    let shown = String::from_utf8(shown.stdout).expect("text");
    assert!(shown.starts_with("Name:\tcat\n"), "{shown}");

    let mut cat = Command::new(env!("CARGO_BIN_EXE_cat"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut stdin = cat.stdin.take().expect("it is piped");
    // Fits the pipe.
    stdin.write_all(&noise(30_000)).expect("it reads");
    drop(stdin);
    let shown = cat.wait_with_output().expect("it is our child");
    assert!(shown.status.success() && shown.stdout == noise(30_000));
}

#[test]
fn cat_goes_on_after_a_file_that_is_not_there() {
    let folder = folder();
    let path = folder.path().join("there");
    fs::write(&path, "hello").expect("there is room");
    let arguments = ["/nowhere", text(folder.path()), text(&path)];
    let shown = run(env!("CARGO_BIN_EXE_cat"), &arguments);
    assert_eq!(shown.status.code(), Some(1));
    assert_eq!(shown.stdout, b"hello");
    let told = String::from_utf8_lossy(&shown.stderr);
    assert!(told.contains("cat: /nowhere: "), "{told}");
    assert!(told.contains("directory"), "{told}");
}

#[test]
fn a_copy_is_the_same_byte_by_byte() {
    let folder = folder();
    let [source, copy] = ["source", "copy"].map(|name| folder.path().join(name));
    // What was there before is gone, also if it was longer.
    fs::write(&copy, noise(12 << 20)).expect("there is room");
    for length in LENGTHS {
        fs::write(&source, noise(length)).expect("there is room");
        let arguments = [text(&source), text(&copy), "--block-kib", "256", "--sync"];
        let told = run(env!("CARGO_BIN_EXE_copy"), &arguments);
        assert!(
            told.status.success(),
            "{}",
            String::from_utf8_lossy(&told.stderr)
        );
        let told = String::from_utf8_lossy(&told.stdout);
        assert!(told.starts_with(&format!("{length} bytes in ")), "{told}");
        let copied = fs::read(&copy).expect("it was written");
        assert!(copied == noise(length), "{length}: {}", copied.len());
    }
}

#[test]
fn a_file_is_not_copied_onto_itself() {
    let folder = folder();
    let [source, link] = ["source", "link"].map(|name| folder.path().join(name));
    fs::write(&source, "precious").expect("there is room");
    fs::hard_link(&source, &link).expect("the disk has links");
    let told = run(env!("CARGO_BIN_EXE_copy"), &[text(&source), text(&link)]);
    assert!(!told.status.success());
    let told = String::from_utf8_lossy(&told.stderr);
    assert!(told.contains("the same file"), "{told}");
    assert_eq!(fs::read(&source).expect("it is there"), b"precious");
}

#[test]
fn storage_measures_and_leaves_nothing_behind() {
    let folder = folder();
    let arguments = [text(folder.path()), "--size-mib", "8", "--seconds", "0.05"];
    let told = run(env!("CARGO_BIN_EXE_storage"), &arguments);
    assert!(
        told.status.success(),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
    let table = String::from_utf8(told.stdout).expect("text");
    let lines: Vec<&str> = table.lines().skip(2).collect();
    assert_eq!(lines.len(), 12, "{table}");
    for line in lines {
        // The last word is a figure: of a stream its only one, else the longest wait.
        let figure = line.split_whitespace().last();
        let figure: f64 = figure.and_then(|it| it.parse().ok()).expect("a number");
        assert!(figure > 0.0, "{line}");
    }
    let left = fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

/// The store, run on a file.
struct Store {
    process: Child,
    answers: BufReader<ChildStdout>,
}

impl Store {
    /// Starts it; the lines that it begins with.
    fn start(file: &Path) -> (Store, Vec<String>) {
        let mut process = Command::new(env!("CARGO_BIN_EXE_kv_log"))
            .arg(file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        let mut store = Store { process, answers };
        let mut begin = vec![store.answer()];
        if begin[0].contains("cut off") {
            begin.push(store.answer());
        }
        (store, begin)
    }

    fn send(&mut self, commands: &str) {
        let stdin = self.process.stdin.as_mut().expect("it is piped");
        stdin.write_all(commands.as_bytes()).expect("it reads");
    }

    /// The next answer; empty when there is none any more.
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("text");
        line.trim_end().to_owned()
    }

    fn ask(&mut self, command: &str) -> String {
        self.send(&format!("{command}\n"));
        self.answer()
    }

    /// Kills it, and takes the answers that were still on their way.
    fn kill(mut self) -> Vec<String> {
        self.process.kill().expect("it runs");
        let mut answers = Vec::new();
        loop {
            match self.answer() {
                answer if answer.is_empty() => return answers,
                answer => answers.push(answer),
            }
        }
    }

    /// Closes its input, and waits for its end.
    fn end(mut self) {
        drop(self.process.stdin.take());
        assert!(self.process.wait().expect("it is our child").success());
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Both fail only if it has ended and been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// However soon after an acknowledgement the process is killed: what it acknowledged is there.
#[test]
fn kv_log_keeps_what_it_acknowledged_when_it_is_killed() {
    let folder = folder();
    let file = folder.path().join("data.log");
    let mut safe = 0;
    for life in 0..4 {
        let (mut store, begin) = Store::start(&file);
        let keys: usize = begin
            .last()
            .and_then(|line| line.split([' ', ',']).nth(1)?.parse().ok())
            .expect("a count");
        assert!(keys >= safe, "{begin:?}: {safe} keys were acknowledged");
        for key in [0, safe / 2, safe.saturating_sub(1)] {
            let expected = if key < safe {
                format!("value of {key}")
            } else {
                "NONE".to_owned()
            };
            // A key that was not acknowledged may be there all the same.
            if key < safe || keys == 0 {
                assert_eq!(store.ask(&format!("GET key{key}")), expected);
            }
        }
        // More than it can have synced when the first answers come.
        let commands: String = (safe..safe + 400)
            .map(|key| format!("SET key{key} value of {key}\n"))
            .collect();
        store.send(&commands);
        for _ in 0..20 + life * 30 {
            assert_eq!(store.answer(), "OK");
            safe += 1;
        }
        let rest = store.kill();
        assert!(rest.iter().all(|answer| answer == "OK"), "{rest:?}");
        safe += rest.len();
    }
    let (mut store, _) = Store::start(&file);
    for key in 0..safe {
        assert_eq!(
            store.ask(&format!("GET key{key}")),
            format!("value of {key}")
        );
    }
    store.end();
}

/// What a crash can leave at the end of the file is cut off, and nothing else.
#[test]
fn kv_log_cuts_off_what_is_no_whole_record() {
    let folder = folder();
    let file = folder.path().join("data.log");
    let (mut store, begin) = Store::start(&file);
    assert_eq!(begin, ["keys: 0, bytes: 0"]);
    assert_eq!(store.ask("SET colour blue"), "OK");
    assert_eq!(store.ask("SET shape round and flat"), "OK");
    assert_eq!(store.ask("DEL colour"), "OK");
    assert_eq!(store.ask("DEL colour"), "NONE");
    assert!(store.ask("PUT colour").starts_with("ERROR"));
    store.end();
    let whole = fs::read(&file).expect("it was written");
    // Half a record, one that was damaged, and what is no record at all.
    let half = whole[..20].to_vec();
    let mut damaged = whole.clone();
    damaged[13] ^= 1;
    for torn in [half, damaged, vec![0xff; 50], noise(3_000)] {
        fs::write(&file, [&*whole, &*torn].concat()).expect("there is room");
        let (mut store, begin) = Store::start(&file);
        assert!(
            begin[0].starts_with(&format!("{} bytes", torn.len())),
            "{begin:?}"
        );
        assert_eq!(begin[1], format!("keys: 1, bytes: {}", whole.len()));
        assert_eq!(store.ask("GET shape"), "round and flat");
        assert_eq!(store.ask("GET colour"), "NONE");
        // The file belongs to one process at a time.
        let second = run(env!("CARGO_BIN_EXE_kv_log"), &[text(&file)]);
        let told = String::from_utf8_lossy(&second.stderr);
        assert!(
            !second.status.success() && told.contains("in use"),
            "{told}"
        );
        store.end();
        assert_eq!(fs::read(&file).expect("it is there"), whole);
    }
}

/// Also where a part of a record fits, so that the system reports a short write and no error.
#[test]
fn kv_log_on_a_full_disk_names_the_file() {
    let folder = folder();
    let file = folder.path().join("data.log");
    // A limit of the size of files, as a device that is full: two blocks, of which two records fill
    // one and a half.
    let script = format!(
        "trap '' XFSZ; ulimit -f 2; exec {} {}",
        env!("CARGO_BIN_EXE_kv_log"),
        text(&file)
    );
    let mut process = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let value = "v".repeat(740);
    let mut stdin = process.stdin.take().expect("it is piped");
    let mut told = String::new();
    for key in 0..8 {
        // It may have ended.
        let _ = writeln!(stdin, "SET {key} {value}");
    }
    drop(stdin);
    let mut errors = process.stderr.take().expect("it is piped");
    errors.read_to_string(&mut told).expect("text");
    let status = process.wait().expect("it is our child");
    assert!(!status.success(), "not all that was written fits");
    assert!(told.contains(text(&file)), "{told}");
}
