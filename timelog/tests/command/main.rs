//! The command `timelog` for logs in files.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use glommio::{LocalExecutor, LocalExecutorPoolBuilder, PoolPlacement};
use timelog::Record;
use timelog::durable::{Config, Log, Mesh, Sharded};

#[derive(Clone)]
struct Trade {
    price: f64,
    size: i64,
}

impl Record for Trade {
    const BYTES: usize = 16;

    fn type_name() -> String {
        <(f64, i64)>::type_name()
    }

    fn encode(&self, bytes: &mut [u8]) {
        (self.price, self.size).encode(bytes);
    }

    fn decode(bytes: &[u8]) -> Self {
        let (price, size) = Record::decode(bytes);
        Self { price, size }
    }
}

fn config() -> Config {
    Config::default().wal_file_bytes(64 << 10)
}

fn trades(path: &Path, closes: bool) {
    LocalExecutor::default().run(async {
        let (log, _) = Log::open(path, config()).await.unwrap();
        for start in [0, 3_000] {
            let rows = (start..start + 3_000).map(|ts| {
                let price = ts as f64 / 2.0;
                (ts - 10, Trade { price, size: -ts })
            });
            log.extend(rows).unwrap().await.unwrap();
            log.checkpoint().await.unwrap();
        }
        drop(log.delete(5_980..).unwrap());
        log.sync().await.unwrap();
        if closes {
            log.close().await.unwrap();
        }
    });
}

/// Its exit code and what it prints.
fn timelog(arguments: &[&str], path: &Path, input: &str) -> (i32, String, String) {
    let (command, rest) = arguments.split_first().unwrap();
    let mut process = Command::new(env!("CARGO_BIN_EXE_timelog"))
        .args(["--quiet", command])
        .arg(path)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = process.stdin.take().unwrap();
    // It may end without a look at it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn well(arguments: &[&str], path: &Path, input: &str) -> String {
    let (code, output, errors) = timelog(arguments, path, input);
    assert_eq!(code, 0, "{arguments:?}: {output}{errors}");
    output
}

fn json(arguments: &[&str], path: &Path) -> serde_json::Value {
    let output = well(&[arguments, &["--json"]].concat(), path, "");
    serde_json::from_str(&output).unwrap()
}

#[test]
fn a_log_of_a_type_of_its_own_is_looked_at_and_dumped() {
    for closes in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = &folder.path().join("trades");
        trades(path, closes);
        let info = json(&["info"], path);
        assert_eq!(
            (&info["type"], &info["unit"]),
            (&"(f64, i64)".into(), &"nanos".into())
        );
        assert_eq!(info["logs"][0]["closed"], closes);
        assert!(well(&["info"], path, "").contains("checkpoint-"));
        assert_eq!(
            json(&["check"], path),
            serde_json::json!({"rows": 5_990, "damage": []})
        );
        let dump = well(&["dump"], path, "");
        let lines: Vec<_> = dump.lines().collect();
        assert_eq!(lines.len(), 5_991);
        assert_eq!(
            &lines[..3],
            ["timestamp,value_0,value_1", "-10,0,0", "-9,0.5,-1"]
        );
        let query = ["query", "--from", "-9", "--to", "-7"];
        let rows = well(&[&query[..], &["--json"]].concat(), path, "");
        assert_eq!(
            rows,
            "{\"timestamp\":-9,\"value\":[0.5,-1]}\n{\"timestamp\":-8,\"value\":[1.0,-2]}\n"
        );
        let count = json(&[&query[..], &["--count"]].concat(), path);
        assert_eq!(
            count,
            serde_json::json!({"count": 2, "first": -9, "last": -8})
        );
        assert_eq!(
            well(&["query", "--limit", "1"], path, "").lines().count(),
            2
        );
        let bytes = json(&["compact"], path);
        assert!(
            bytes["bytes_after"].as_u64() < bytes["bytes_before"].as_u64(),
            "{bytes}"
        );
        assert_eq!(well(&["dump"], path, ""), dump);

        // What was dumped is loaded by a log of the same type.
        let copy = &folder.path().join("copy");
        LocalExecutor::default().run(async {
            let (log, _) = Log::<Trade>::open(copy, config()).await.unwrap();
            log.close().await.unwrap();
        });
        assert_eq!(well(&["load"], copy, &dump), "5990 rows loaded\n");
        assert_eq!(well(&["dump"], copy, ""), dump);
    }
}

#[test]
fn numbers_are_loaded_into_a_new_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("log");
    let load = ["load", "--type", "i32", "--unit", "millis"];
    let (code, _, errors) = timelog(&["load"], path, "");
    assert!(code == 4 && errors.contains("No such file"), "{errors}");
    assert_eq!(
        well(&load, path, "timestamp,value\n5,-7\n3,8\n"),
        "2 rows loaded\n"
    );
    let (code, _, errors) = timelog(&load, path, "timestamp,value\n5,-7\n3,x\n");
    assert!(
        code == 4 && errors.contains("line 3: \"x\", expected i32"),
        "{errors}"
    );
    let (_, _, errors) = timelog(&["load", "--type", "u32", "--unit", "millis"], path, "");
    assert!(errors.contains("i32 of 4 bytes, not u32"), "{errors}");
    assert_eq!(well(&["dump"], path, ""), "timestamp,value\n3,8\n5,-7\n");
    assert!(well(&["info"], path, "").contains("millis"));
}

/// The row that is below the floor, and not the last one of its batch.
#[test]
fn a_refused_row_is_named_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("log");
    LocalExecutor::default().run(async {
        let (log, _) = Log::<u8>::open(path, config()).await.unwrap();
        drop(log.raise_floor(10).unwrap());
        log.close().await.unwrap();
    });
    let (code, _, errors) = timelog(&["load"], path, "timestamp,value\n10,1\n9,2\n11,3\n");
    assert_eq!(code, 4);
    assert!(
        errors.contains("line 3: 9 is below the floor 10"),
        "{errors}"
    );
    assert_eq!(json(&["query", "--count"], path)["count"], 0);
}

#[test]
fn a_damaged_log_is_named_and_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = &folder.path().join("log");
    trades(path, true);
    let files = std::fs::read_dir(path)
        .unwrap()
        .map(|it| it.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.retain(|it| it.to_string_lossy().contains("checkpoint"));
    let file = &files[0];
    let mut bytes = std::fs::read(file).unwrap();
    bytes[5_000] ^= 1;
    std::fs::write(file, bytes).unwrap();
    let (code, output, _) = timelog(&["check"], path, "");
    let name = file.file_name().unwrap().to_string_lossy();
    assert!(code == 3 && output.contains(&*name), "{output}");
    let (code, _, errors) = timelog(&["dump"], path, "");
    assert!(code == 4 && errors.contains(&*name), "{errors}");
    let into = folder.path().join("new");
    let (code, output, _) = timelog(&["salvage", into.to_str().unwrap()], path, "");
    assert!(code == 3 && output.contains(&*name), "{output}");
    assert_eq!(json(&["check"], &into)["damage"], serde_json::json!([]));
    std::fs::remove_file(path.join("MANIFEST")).unwrap();
    let (code, output, errors) = timelog(&["check"], path, "");
    assert!(code != 0 && (output + &errors).contains("MANIFEST"));
}

#[test]
fn the_rows_of_shards_are_in_the_order_of_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    let mesh = Mesh::<u64>::new(2);
    let pool = LocalExecutorPoolBuilder::new(PoolPlacement::Unbound(2));
    let shards = pool.on_all_shards(|| async move {
        let (log, _) = Sharded::open(mesh, path, config()).await.unwrap();
        let own = log.shard_id() as u64;
        for ts in 0..10 {
            let commit = log
                .append(own.to_le_bytes(), 2 * ts + own as i64, own)
                .await;
            commit.unwrap().await.unwrap();
        }
        log.close().await.unwrap();
    });
    shards
        .unwrap()
        .join_all()
        .into_iter()
        .for_each(|it| it.unwrap());
    let path = folder.path();
    let info = json(&["info"], path);
    assert_eq!(
        (&info["shards"], info["logs"].as_array().unwrap().len()),
        (&2.into(), 2)
    );
    let rows: String = (0..20).map(|ts| format!("{ts},{}\n", ts % 2)).collect();
    assert_eq!(
        well(&["dump"], path, ""),
        format!("timestamp,value\n{rows}")
    );
    assert_eq!(json(&["check"], path)["rows"], 20);
    well(&["compact"], path, "");
    assert_eq!(json(&["query", "--count"], path)["count"], 20);
    std::fs::remove_dir_all(path.join("shard-1")).unwrap();
    let (code, _, errors) = timelog(&["dump"], path, "");
    assert!(code == 4 && errors.contains("shard-1"), "{errors}");
}
