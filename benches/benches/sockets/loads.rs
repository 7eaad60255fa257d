//! The cases: which server, which load, on which CPUs.

use benches::runtime::load::Cpus::{One, Two};
use benches::runtime::load::{Cpus, Load};

/// All cases.
#[rustfmt::skip]
pub const ALL: &[Load] = &[
    load("tcp", "serve-echo", &["ping-pong"], One),
    load("tcp-timeout", "serve-echo-timeout", &["ping-pong"], One),
    load("tcp-apart", "serve-echo", &["ping-pong"], Two),
    load("tcp-timeout-apart", "serve-echo-timeout", &["ping-pong"], Two),
    load("udp", "serve-datagrams", &["datagrams"], One),
    load("udp-apart", "serve-datagrams", &["datagrams"], Two),
    load("echo-64", "serve-echo", &["crowd", "64"], One),
    load("echo-64-apart", "serve-echo", &["crowd", "64"], Two),
    load("echo-64-timeout-apart", "serve-echo-timeout", &["crowd", "64"], Two),
    load("echo-1k-apart", "serve-echo", &["crowd", "1000"], Two),
    load("echo-1k-timeout-apart", "serve-echo-timeout", &["crowd", "1000"], Two),
    load("bulk-read", "serve-sink", &["send"], One),
    load("bulk-write", "serve-source", &["receive"], One),
    load("bulk-read-apart", "serve-sink", &["send"], Two),
    load("bulk-write-apart", "serve-source", &["receive"], Two),
    load("accept", "serve-accept", &["newcomers"], Two),
    load("idle", "serve-echo-timeout", &["idle", "10000"], Two),
];

const fn load(
    case: &'static str,
    server: &'static str,
    arguments: &'static [&'static str],
    cpus: Cpus,
) -> Load {
    Load {
        case,
        server,
        arguments,
        cpus,
    }
}
