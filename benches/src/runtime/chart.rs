//! Figures as lines of a diagram.

use support::plots::lines::{Diagram, DiagramPanel, Line, PANEL_SIZE, Scale};

use super::peers::Peer;
use super::rounds::Figures;

/// A diagram on a page.
#[derive(Debug)]
pub struct Picture {
    /// What it is about: the end of the name of its file.
    pub subject: &'static str,
    /// Above it.
    pub title: &'static str,
    /// What the places on the axis to the right count.
    pub x: &'static str,
    /// The axis upwards.
    pub y: fn() -> Scale,
    /// Each with its title.
    pub panels: &'static [(&'static str, Points)],
}

/// The rows of a panel, each with its place on the axis.
pub type Points = [(f64, &'static str); 3];

impl Picture {
    /// A line for each crate: the medians of the rows.
    pub fn diagram(&self, crates: &[Peer], figures: &Figures) -> Diagram {
        let line = |peer: &Peer, points: &Points| {
            let points = points.iter().filter_map(|&(place, row)| {
                let spread = figures.spread_of(row, *peer)?;
                Some((place, spread.median))
            });
            Line {
                name: peer.title().to_owned(),
                points: points.collect(),
                is_bold: peer.is_ours,
            }
        };
        let panels = self.panels.iter().map(|(title, points)| DiagramPanel {
            title: (*title).to_owned(),
            lines: crates.iter().map(|peer| line(peer, points)).collect(),
        });
        Diagram {
            title: self.title.to_owned(),
            x: Scale::counts(self.x),
            y: (self.y)(),
            panels: panels.collect(),
            panel_size: PANEL_SIZE,
        }
    }
}
