use timelog::dump::{LoadErrorKind, Position};
use timelog::{MemLog, Ts};

use crate::{in_every_state, log, rows, small};

fn dumped(log: &mut MemLog<u64>) -> Vec<u8> {
    let mut file = Vec::new();
    let snapshot = log.snapshot();
    assert_eq!(
        snapshot.dump(.., &mut file).unwrap(),
        snapshot.count(..),
        "the rows that are told"
    );
    file
}

/// Equals stay in order, deleted rows are not in it.
#[test]
fn load_gives_what_was_dumped() {
    let mut log = log();
    for round in 0..5 {
        log.extend((0..100).map(|row| (row * 13 % 40, round * 100 + row as u64)))
            .unwrap();
        log.delete(round as Ts * 3..round as Ts * 3 + 2).unwrap();
    }
    log.extend([(Ts::MIN, 1), (Ts::MAX, 2)]).unwrap();
    in_every_state(&mut log, |log| {
        let file = dumped(log);
        let mut copy = MemLog::new(small()).unwrap();
        assert_eq!(copy.load(&file[..]).unwrap(), log.snapshot().count(..));
        assert_eq!(rows(&copy.snapshot(), ..), rows(&log.snapshot(), ..));
        copy.check().unwrap();
    });
}

#[test]
fn more_rows_than_a_block_holds() {
    let mut log = MemLog::new(timelog::Config::default()).unwrap();
    log.extend((0..150_000).map(|ts| (ts, ts as u64))).unwrap();
    let file = dumped(&mut log);
    assert_eq!(file.len(), 28 + 3 * 8 + 150_000 * 16);
    let mut copy = MemLog::<u64>::new(timelog::Config::default()).unwrap();
    copy.load(&file[..]).unwrap();
    let (copy, log) = (copy.snapshot(), log.snapshot());
    assert!(copy.range(..).eq(log.range(..)));

    // The second block is damaged: the first one is in, and no other.
    let mut damaged = file.clone();
    let block = 8 + 65_536 * 16;
    damaged[28 + block + 5_000] ^= 4;
    let mut copy = MemLog::<u64>::new(timelog::Config::default()).unwrap();
    let error = copy.load(&damaged[..]).unwrap_err();
    assert!(
        matches!(error.kind, LoadErrorKind::Checksum { .. }),
        "{error}"
    );
    assert_eq!(
        (error.rows, error.at),
        (65_536, Position::Offset(28 + block as u64))
    );
    assert_eq!(copy.snapshot().count(..), 65_536);
}

/// Each bit is covered by a checksum, and each missing byte is seen.
#[test]
fn damage_is_found() {
    let mut log = log();
    log.extend((0..20).map(|ts| (ts, 7 * ts as u64))).unwrap();
    let file = dumped(&mut log);
    for at in 0..file.len() {
        for bit in [0, 7] {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            let error = crate::log().load(&damaged[..]).unwrap_err();
            assert_eq!(error.rows, 0, "byte {at}: {error}");
        }
        let mut copy = crate::log();
        let error = copy.load(&file[..at]).unwrap_err();
        assert!(matches!(error.kind, LoadErrorKind::Read(_)), "{error}");
        assert_eq!(copy.stats().seq.0, 0);
    }
    let mut input = &[&file[..], b"more"].concat()[..];
    crate::log().load(&mut input).unwrap();
    assert_eq!(input, b"more", "what follows is not read");
}

#[test]
fn another_width_and_the_floor_are_refused() {
    let mut log = log();
    log.extend([(1, 1), (2, 2)]).unwrap();
    let file = dumped(&mut log);
    let error = MemLog::<u32>::new(small())
        .unwrap()
        .load(&file[..])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "offset 0: the bytes of a value is 8, expected 4; 0 rows are loaded"
    );
    let mut high = MemLog::<u64>::new(small().floor(2)).unwrap();
    let error = high.load(&file[..]).unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::Refused(_)));
    assert_eq!(high.stats().seq.0, 0);
}

#[cfg(feature = "csv")]
mod csv {
    use super::*;

    #[test]
    fn csv_gives_what_was_dumped() {
        let mut log = MemLog::new(small()).unwrap();
        let texts = ["", "plain", "a, b", "\"quoted\"", "two\nlines", "ü"];
        for (row, text) in (0..10_000).zip(texts.iter().cycle()) {
            log.append(row * 7 % 1_000 - 3, format!("{text}{}", row % 3))
                .unwrap();
        }
        log.delete(100..200).unwrap();
        let mut file = Vec::new();
        let snapshot = log.snapshot();
        assert_eq!(
            snapshot.dump_csv(.., &mut file).unwrap(),
            snapshot.count(..)
        );
        let mut copy = MemLog::<String>::new(small()).unwrap();
        assert_eq!(copy.load_csv(&file[..]).unwrap(), snapshot.count(..));
        assert!(copy.snapshot().range(..).eq(snapshot.range(..)));
    }

    /// The row that is below the floor, and not the last one of its batch.
    #[test]
    fn a_refused_row_is_named_by_its_line() {
        let mut log = MemLog::<String>::new(small().floor(10)).unwrap();
        let error = log
            .load_csv(&b"timestamp,value\n10,\"two\nlines\"\n9,low\n11,x\n12,x\n"[..])
            .unwrap_err();
        assert_eq!((error.rows, error.at), (0, Position::Line(4)), "{error}");
        assert!(matches!(error.kind, LoadErrorKind::Refused(_)), "{error}");
    }

    #[test]
    fn bad_lines_are_named() {
        let load = |text: &str| {
            let mut log = log();
            let loaded = log.load_csv(text.as_bytes());
            loaded.map_err(|error| (error.to_string(), log.stats().seq.0))
        };
        assert_eq!(
            load("timestamp,value\n5,1\n-6,2"),
            Ok(2),
            "no last line end"
        );
        assert_eq!(load("timestamp,value\n"), Ok(0));
        for (text, expected) in [
            (
                "time,value\n",
                "line 1: the header is \"time,value\", expected timestamp,value",
            ),
            ("", "line 1: the header is \"\", expected timestamp,value"),
            (
                "timestamp,value\n1,2\nx,3\n",
                "line 3: timestamp is \"x\", expected an integer",
            ),
            (
                "timestamp,value\n1,2\n2,-3\n",
                "line 3: value is \"-3\", expected a value (",
            ),
            (
                "timestamp,value\n1,2\n2\n",
                "line 3: the number of columns is 1, expected 2",
            ),
        ] {
            let (error, rows) = load(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
            assert_eq!(rows, 0, "the batch is not in");
        }
    }
}
