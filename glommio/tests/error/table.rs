//! Each variant: the kind that it has as an `io::Error`, and what it looks like in print.

use io::ErrorKind as Kind;

use super::*;

/// A variant, its kind, and what its text and its debug text show, in this order, with `|` in between.
type Row = (GlommioError<()>, Kind, &'static str, &'static str);

fn rows() -> [Row; 25] {
    let channel = || ResourceType::Channel(());
    let invalid_id = ExecutorErrorKind::InvalidId(90);
    let no_cpu = BuilderErrorKind::NonExistentCpus { cpu: 4095 };
    let shards = BuilderErrorKind::NrShards {
        minimum: 35,
        shards: 12,
    };
    let cpus = BuilderErrorKind::InsufficientCpus {
        required: 31,
        available: 29,
    };
    let memory = ReactorErrorKind::MemLockLimit(65536, 524288);
    let source = ReactorErrorKind::IncorrectSourceType("odd".into());
    let too_late = GlommioError::TimedOut(Duration::from_millis(250));
    use GlommioError::*;
    #[rustfmt::skip]
    let rows = [
        (IoError(errno(libc::EACCES)), Kind::PermissionDenied, "I/O error|Permission denied (os error 13)", "code: 13"),
        (enhanced(), errno(libc::EBADF).kind(), "Bad file descriptor (os error 9), op: testing enhancer path: None with fd: Some(32)",
            "EnhancedIoError|source|code: 9|op|testing enhancer|path|None|fd|Some(32)"),
        (made_up(), Kind::InvalidData, "made up|testing enhancer|None|Some(32)", "EnhancedIoError"),
        (WouldBlock(ResourceType::RwLock), Kind::WouldBlock, "RwLock operation would block", "RwLock"),
        (WouldBlock(semaphore()), Kind::WouldBlock, "Semaphore operation would block (|11|2|)", "Semaphore|would block|11|2"),
        (WouldBlock(channel()), Kind::WouldBlock, "Channel operation would block", "Channel"),
        (WouldBlock(file("busy")), Kind::WouldBlock, "File operation would block (|busy|)", r#"File operation would block ("busy")"#),
        (WouldBlock(ResourceType::Gate), Kind::WouldBlock, "Gate operation would block", "Gate"),
        (Closed(semaphore()), Kind::BrokenPipe, "Semaphore is closed (|11|2|)", "Semaphore|closed|11|2"),
        (Closed(ResourceType::RwLock), Kind::BrokenPipe, "RwLock is closed", "RwLock"),
        (Closed(channel()), Kind::BrokenPipe, "Channel is closed", "Channel is closed"),
        (Closed(file("gone")), Kind::BrokenPipe, "File is closed (|gone|)", r#"File is closed ("gone")"#),
        (Closed(ResourceType::Gate), Kind::BrokenPipe, "Gate is closed", "Gate"),
        (CanNotBeClosed(channel(), "full"), Kind::BrokenPipe, "can not be closed|full", "Channel|can not be closed|full"),
        (CanNotBeClosed(ResourceType::RwLock, "held"), Kind::BrokenPipe, "can not be closed|held", "RwLock|can not be closed|held"),
        (queue(QueueErrorKind::StillActive), Kind::Other, "xecutor error|Queue #7 is still active", "QueueError|index: 7|StillActive"),
        (queue(QueueErrorKind::NotFound), Kind::NotFound, "xecutor error|Queue #7 is not found", "QueueError|index: 7|NotFound"),
        (ExecutorError(invalid_id), Kind::InvalidInput, "xecutor error|90|invalid", "InvalidId|90"),
        (builder(no_cpu), Kind::Other, "xecutor builder error|4095|no such CPU", "NonExistentCpus|cpu: 4095"),
        (builder(shards), Kind::Other, "xecutor builder error|requested 12|35 required", "NrShards|minimum: 35|shards: 12"),
        (builder(cpus), Kind::Other, "xecutor builder error|found 29 of 31", "InsufficientCpus|required: 31|available: 29"),
        (builder(panicked("boom")), Kind::Other, "xecutor builder error|panicked|boom", "ThreadPanic"),
        (ReactorError(source), Kind::InvalidData, "eactor error|odd", "IncorrectSourceType|odd"),
        (ReactorError(memory), Kind::Other, "eactor error|too low|65536 bytes|524288 bytes|RLIMIT_MEMLOCK|ulimit -l", "MemLockLimit|65536|524288"),
        (too_late, Kind::TimedOut, "Operation timed out after 250ms", "TimedOut { dur 250ms }"),
    ];
    rows
}

#[test]
fn each_variant_has_its_kind() {
    for (error, kind, _, _) in rows() {
        let text = error.to_string();
        let errno = error.raw_os_error();
        let converted = io::Error::from(error);
        assert_eq!(converted.kind(), kind, "{text}");
        assert_eq!(converted.raw_os_error(), errno, "{text}");
        match errno {
            None => assert_eq!(converted.to_string(), text),
            Some(code) => assert_eq!(converted.to_string(), super::errno(code).to_string()),
        }
    }
}

#[test]
fn each_variant_shows_its_facts_in_order() {
    for (error, _, facts, debug_facts) in rows() {
        assert_shows_in_order(&error.to_string(), facts);
        assert_shows_in_order(&format!("{error:?}"), debug_facts);
    }
}

/// Leaving the item behind changes neither text.
#[test]
fn without_item_keeps_everything_else() {
    let same = |whole: [String; 2], error: GlommioError<()>| {
        assert_eq!([error.to_string(), format!("{error:?}")], whole);
    };
    for (error, ..) in rows() {
        same(
            [error.to_string(), format!("{error:?}")],
            error.without_item(),
        );
    }
    let error = GlommioError::Closed(ResourceType::Channel(7));
    same(
        [error.to_string(), format!("{error:?}")],
        error.without_item(),
    );
}

pub fn assert_shows_in_order(text: &str, facts: &str) {
    let mut rest = text;
    for fact in facts.split('|') {
        let Some((_, after)) = rest.split_once(fact) else {
            panic!("{fact:?} is missing or out of order in {text:?}");
        };
        rest = after;
    }
}
