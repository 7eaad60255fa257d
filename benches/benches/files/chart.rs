//! What a read costs, against how many are under way.

use benches::runtime::chart::panel;
use benches::runtime::peers::Peer;
use benches::runtime::rounds::Figures;
use support::numbers::number;
use support::plots::lines::{Diagram, PANEL_SIZE, Scale};

/// The rows of a panel, with the reads that are under way at a time.
type Points = [(f64, &'static str); 3];

const DIRECT: Points = [
    (1.0, "direct-1-cpu"),
    (8.0, "direct-8-cpu"),
    (32.0, "direct-32-cpu"),
];
const BUFFERED: Points = [
    (1.0, "buffered-1-cpu"),
    (8.0, "buffered-8-cpu"),
    (32.0, "buffered-32-cpu"),
];

/// CPU per read of all crates, past the page cache and from it.
pub fn read_cpu(crates: &[Peer], figures: &Figures) -> Diagram {
    let panel = |title, points: Points| panel(title, crates, figures, &points);
    Diagram {
        title: "What a read of 4 KiB at a random place costs".to_owned(),
        x: Scale::counts("reads under way at a time"),
        y: Scale {
            label: "µs of CPU per read".to_owned(),
            text: number,
        },
        panels: vec![
            panel("past the page cache", DIRECT),
            panel("from the page cache", BUFFERED),
        ],
        panel_size: PANEL_SIZE,
    }
}
