//! Figures as lines of a diagram.

use support::plots::lines::{DiagramPanel, Line};

use super::peers::Peer;
use super::rounds::Figures;

/// A line for each crate: the medians of rows, each at the place on the axis that `points` gives it.
pub fn panel(
    title: &str,
    crates: &[Peer],
    figures: &Figures,
    points: &[(f64, &'static str)],
) -> DiagramPanel {
    DiagramPanel {
        title: title.to_owned(),
        lines: crates
            .iter()
            .map(|&peer| line(peer, figures, points))
            .collect(),
    }
}

fn line(peer: Peer, figures: &Figures, points: &[(f64, &'static str)]) -> Line {
    let points = points.iter().filter_map(|&(place, row)| {
        let spread = figures.spread_of(row, peer)?;
        Some((place, spread.median))
    });
    Line {
        name: peer.title().to_owned(),
        points: points.collect(),
        is_bold: peer.is_ours,
    }
}
