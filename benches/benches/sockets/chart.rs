//! What a message costs the server, against how many connections there are.

use benches::runtime::chart::panel;
use benches::runtime::peers::Peer;
use benches::runtime::rounds::Figures;
use support::plots::lines::{Diagram, PANEL_SIZE, Scale};

/// The rows of a panel, with their connections.
type Points = [(f64, &'static str); 3];

const WITHOUT: Points = [
    (1.0, "tcp-apart-cpu"),
    (64.0, "echo-64-apart-cpu"),
    (1000.0, "echo-1k-apart-cpu"),
];
const WITH: Points = [
    (1.0, "tcp-timeout-apart-cpu"),
    (64.0, "echo-64-timeout-apart-cpu"),
    (1000.0, "echo-1k-timeout-apart-cpu"),
];

/// Server CPU per message of all crates, without and with read timeouts.
pub fn server_cpu(crates: &[Peer], figures: &Figures) -> Diagram {
    let panel = |title, points: Points| panel(title, crates, figures, &points);
    Diagram {
        title: "What a message of 64 bytes costs an echo server on a CPU of its own".to_owned(),
        x: Scale::counts("connections, one message in flight on each"),
        y: Scale::whole("µs of server CPU per message"),
        panels: vec![
            panel("without read timeouts", WITHOUT),
            panel("with read timeouts of 30 s", WITH),
        ],
        panel_size: PANEL_SIZE,
    }
}
