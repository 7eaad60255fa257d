//! One plot as SVG that stretches: its texts and strokes keep their size while its plane takes the
//! width there is.
//!
//! ```text
//!   y title
//!   10 ms ┤          ╭╮                    ── max     names beside the ends of their lines,
//!    1 ms ┤──────────╯╰─────────────────   ── p99     pushed apart where these meet
//!         └──────┬───────┬───────┬──────
//!                1       2       3   minutes into the run
//! ```
//!
//! The plane is an `svg` element of its own with places in percent, and the lines lie in another
//! one in it that is stretched without regard to its proportions. Within a page, style sheets give
//! the plane its margins and width; in a picture by itself, attributes do.

use std::fmt::Write;
use std::ops::RangeInclusive;

use maud::{Markup, html};

use super::axis::Axis;

/// What is drawn, once per run.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// In the name of its picture's file.
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    /// A sentence on how to read it.
    pub(super) explanation: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) panels: Vec<Panel>,
    /// Whether the lines of a panel have their points at the same places.
    pub(super) is_in_step: bool,
}

/// The lines of one run.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// Of the run's timer queue.
    pub(super) name: String,
    pub(super) lines: Vec<Line>,
    /// Spans of the x axis that do not count.
    pub(super) shaded: Vec<(f64, f64)>,
    /// A place on the x axis that deserves attention, and why.
    pub(super) marker: Option<(f64, &'static str)>,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Vec<(f64, f64)>,
}

/// Told apart by the colour-blind, and without colour by their strokes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    /// A class of the style sheet.
    pub(super) color: &'static str,
    pub(super) stroke: Stroke,
    pub(super) is_filled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

/// Where the plane of a panel goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    /// Where the style sheet puts it.
    Page,
    /// Its upper left corner and its width.
    Picture { left: f64, top: f64, width: f64 },
}

impl Look {
    pub(super) const fn line(color: &'static str) -> Self {
        Look {
            color,
            stroke: Stroke::Solid,
            is_filled: false,
        }
    }

    pub(super) const fn area(color: &'static str) -> Self {
        Look {
            is_filled: true,
            ..Look::line(color)
        }
    }

    pub(super) const fn stroked(self, stroke: Stroke) -> Self {
        Look { stroke, ..self }
    }

    fn class(self, part: &str) -> String {
        let stroke = match self.stroke {
            Stroke::Solid => "",
            Stroke::Dashed => " dashed",
            Stroke::Dotted => " dotted",
        };
        format!("{part} {}{stroke}", self.color)
    }
}

impl Plot {
    /// What one panel shows, in words.
    pub(super) fn text(&self, panel: &Panel) -> String {
        let mut text = format!("{}, {}.", self.title, panel.name);
        for line in panel.lines.iter().filter(|line| !line.points.is_empty()) {
            let values = line.points.iter().map(|point| point.1);
            let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            let (low, high) = (self.y.quantity.text(low), self.y.quantity.text(high));
            write!(text, " {}: from {low} to {high}.", line.name)
                .expect("a string takes every text");
        }
        text
    }

    /// One panel.
    pub(super) fn draw(&self, panel: &Panel, place: Place) -> Markup {
        let corner = match place {
            Place::Page => [None; 3],
            Place::Picture { left, top, width } => [Some(left), Some(top), Some(width)],
        };
        let [x, y, width] = corner;
        html! {
            svg.plane role="img" aria-label=(self.text(panel)) height=(PLANE_HEIGHT)
                overflow="visible" x=[x] y=[y] width=[width]
            {
                @for &(from, to) in &panel.shaded {
                    @let [from, to] = [from, to].map(|at| self.x.place(at).unwrap_or(0.0));
                    rect.shade x=(percent(from)) width=(percent(to - from)) height="100%" {}
                }
                (self.frame())
                @if panel.is_empty() {
                    text x="50%" y="50%" text-anchor="middle" { "nothing to show" }
                } @else {
                    (self.lines(panel))
                    (self.marker(panel))
                    (self.names(panel))
                    // A picture in a document has no hover.
                    @if self.is_in_step && place == Place::Page { (self.tips(panel)) }
                }
            }
        }
    }

    fn frame(&self) -> Markup {
        html! {
            @for tick in &self.y.ticks {
                @let y = percent(1.0 - tick.place);
                line.grid x2="100%" y1=(y) y2=(y) {}
                text.left x="-8" y=(y) dy="4" { (tick.label) }
            }
            @for tick in &self.x.ticks {
                @let x = percent(tick.place);
                line.grid x1=(x) x2=(x) y2="100%" {}
                text.below x=(x) y="100%" dy="20" { (tick.label) }
            }
            line.base x2="100%" y1="100%" y2="100%" {}
            text.axis x="-60" y="-14" { (self.y.title) }
            text.axis.left x="100%" y="100%" dy="37" { (self.x.title) }
        }
    }

    fn lines(&self, panel: &Panel) -> Markup {
        html! {
            svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%"
                overflow="visible"
            {
                // The first is the one that matters most: it lies on top.
                @for line in panel.lines.iter().rev() {
                    @let strokes = self.strokes(line);
                    @if line.look.is_filled {
                        path class=(line.look.class("area")) d=(area_path(&strokes)) {}
                    }
                    // A piece of a single point has no length, only round ends.
                    @let (dots, pieces): (Vec<_>, Vec<_>) = strokes.into_iter().partition(|stroke| stroke.len() == 1);
                    @for (part, pieces) in [("line", pieces), ("line dot", dots)] {
                        @if !pieces.is_empty() {
                            path class=(line.look.class(part)) d=(line_path(&pieces)) {}
                        }
                    }
                }
            }
        }
    }

    /// The line in thousandths of the plane, in pieces where it leaves the axes.
    fn strokes(&self, line: &Line) -> Vec<Vec<(f64, f64)>> {
        let places: Vec<Option<(f64, f64)>> = line
            .points
            .iter()
            .map(|&(x, y)| Some((1e3 * self.x.place(x)?, 1e3 - 1e3 * self.y.place(y)?)))
            .collect();
        let pieces = places
            .split(Option::is_none)
            .map(|piece| piece.iter().flatten());
        let pieces = pieces.map(|piece| piece.copied().collect());
        pieces.filter(|piece: &Vec<_>| !piece.is_empty()).collect()
    }

    fn marker(&self, panel: &Panel) -> Markup {
        let marker = panel.marker;
        let marker = marker.and_then(|(at, why)| Some((self.x.place(at)?, why)));
        html! {
            @if let Some((place, why)) = marker {
                @let x = percent(place);
                @let anchor = if place > 0.5 { "end" } else { "start" };
                line.marker x1=(x) x2=(x) y2="100%" {}
                text.marker x=(x) y="-3" text-anchor=(anchor) { (why) }
            }
        }
    }

    fn names(&self, panel: &Panel) -> Markup {
        let name = |line: &Line| {
            Some(Name {
                end: self.end(line)?,
                rows: wrapped(&line.name),
                look: line.look,
            })
        };
        let names: Vec<Name> = panel.lines.iter().filter_map(name).collect();
        html! {
            @for (name, y) in names.iter().zip(pushed_apart(&names)) {
                svg x="100%" y=(format_args!("{y:.1}")) overflow="visible" {
                    line class=(name.look.class("line")) x1="8" x2="24" {}
                    @for (row, y) in name.rows.iter().zip([4.0, 4.0 + ROW_HEIGHT]) {
                        text.name x="29" y=(y) { (row) }
                    }
                }
            }
        }
    }

    /// How far down the plane the last point of a line is, in pixels.
    fn end(&self, line: &Line) -> Option<f64> {
        let mut from_last = line.points.iter().rev();
        let place = from_last.find_map(|&(x, y)| self.x.place(x).and(self.y.place(y)))?;
        Some((1.0 - place) * PLANE_HEIGHT)
    }

    /// Invisible strips which say, when pointed at, how high each line was at most.
    fn tips(&self, panel: &Panel) -> Markup {
        let points = panel.lines.iter().map(|line| line.points.len());
        let longest = points.max().unwrap_or(0);
        let stride = longest.div_ceil(TIPS_MAX).max(1);
        let place = |index: usize| {
            let of_first = panel.lines.first().and_then(|line| line.points.get(index));
            of_first.and_then(|&(x, _)| self.x.place(x)).unwrap_or(0.0)
        };
        html! {
            @for first in (0..longest).step_by(stride) {
                @let last = longest.min(first + stride) - 1;
                @let from = if first == 0 { 0.0 } else { place(first - 1) };
                rect.tip x=(percent(from)) width=(percent(place(last) - from)) height="100%" {
                    title { (self.tip(panel, first..=last)) }
                }
            }
        }
    }

    fn tip(&self, panel: &Panel, span: RangeInclusive<usize>) -> String {
        let mut tip = String::new();
        for line in &panel.lines {
            let points = &line.points[span.clone()];
            let high = points.iter().map(|point| point.1).fold(f64::MIN, f64::max);
            if let (true, Some(&(x, _))) = (tip.is_empty(), points.last()) {
                tip = format!("until {}", self.x.quantity.text(x));
            }
            write!(tip, "\n{} {}", line.name, self.y.quantity.text(high))
                .expect("a string takes every text");
        }
        tip
    }
}

impl Panel {
    pub(super) fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.points.is_empty())
    }
}

fn percent(place: f64) -> String {
    format!("{:.2}%", 100.0 * place)
}

/// A line through each piece. A piece of one point is a dot, as strokes have round ends.
fn line_path(strokes: &[Vec<(f64, f64)>]) -> String {
    let mut path = String::new();
    for stroke in strokes {
        push_points(&mut path, 'M', stroke.iter().take(1));
        push_points(
            &mut path,
            'L',
            stroke.iter().skip(usize::from(stroke.len() > 1)),
        );
    }
    path
}

/// The same, closed along the x axis.
fn area_path(strokes: &[Vec<(f64, f64)>]) -> String {
    let mut path = String::new();
    for stroke in strokes {
        if let (Some(first), Some(last)) = (stroke.first(), stroke.last()) {
            push_points(&mut path, 'M', [(first.0, 1e3)].iter());
            push_points(&mut path, 'L', stroke.iter().chain([&(last.0, 1e3)]));
            path.push('Z');
        }
    }
    path
}

fn push_points<'a>(path: &mut String, command: char, points: impl Iterator<Item = &'a (f64, f64)>) {
    for (x, y) in points {
        write!(path, "{command}{x:.1} {y:.1}").expect("a string takes every text");
    }
}

/// What stands beside the end of a line.
struct Name {
    end: f64,
    /// One or two.
    rows: Vec<String>,
    look: Look,
}

/// A long name in two rows, as there is little room beside the plane.
fn wrapped(name: &str) -> Vec<String> {
    let half = name.len().div_ceil(2);
    let gaps = name.match_indices([' ', '-']).map(|(at, _)| at + 1);
    match gaps.min_by_key(|gap| gap.abs_diff(half)) {
        Some(gap) if name.len() > NAME_CHARACTERS_MAX => {
            vec![name[..gap].trim_end().to_owned(), name[gap..].to_owned()]
        }
        _ => vec![name.to_owned()],
    }
}

/// Where each name goes so that it is near the end of its line and none covers another.
fn pushed_apart(names: &[Name]) -> Vec<f64> {
    let height = |index: usize| ROW_HEIGHT * names[index].rows.len() as f64 + NAME_GAP;
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|&a, &b| names[a].end.total_cmp(&names[b].end));
    let mut places: Vec<f64> = names.iter().map(|name| name.end).collect();
    let mut free_from = f64::MIN;
    for &index in &order {
        places[index] = places[index].max(free_from);
        free_from = places[index] + height(index);
    }
    let mut free_to = PLANE_HEIGHT + ROW_HEIGHT + NAME_GAP;
    for &index in order.iter().rev() {
        places[index] = places[index].min(free_to - height(index));
        free_to = places[index];
    }
    places
}

/// In pixels, as are the margins that the style sheet knows.
pub(super) const PLANE_HEIGHT: f64 = 180.0;

const ROW_HEIGHT: f64 = 13.0;
const NAME_GAP: f64 = 3.0;

const NAME_CHARACTERS_MAX: usize = 10;

/// Strips that are not too narrow to be pointed at.
const TIPS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_stay_beside_the_plane() {
        let names = [180.0, 179.0, 0.0, 90.0, 178.0].map(|end| Name {
            end,
            rows: wrapped(if end == 179.0 {
                "ping beside bursts"
            } else {
                "p50"
            }),
            look: Look::line("blue"),
        });
        let places = pushed_apart(&names);
        assert_eq!(places, [180.0, 151.0, 0.0, 90.0, 135.0]);
        assert!(pushed_apart(&[]).is_empty());
    }

    #[test]
    fn long_names_take_two_rows() {
        assert_eq!(wrapped("ping beside bursts"), ["ping beside", "bursts"]);
        assert_eq!(wrapped("message-queue"), ["message-", "queue"]);
        assert_eq!(wrapped("noise p99"), ["noise p99"]);
        assert_eq!(wrapped("unbreakable"), ["unbreakable"]);
    }

    #[test]
    fn lines_are_cut_where_they_leave_the_axes_and_single_points_are_dots() {
        assert_eq!(
            line_path(&[vec![(0.0, 1.0), (2.0, 3.0)], vec![(4.0, 5.0)]]),
            "M0.0 1.0L2.0 3.0M4.0 5.0L4.0 5.0"
        );
        assert_eq!(
            area_path(&[vec![(0.0, 1.0), (2.0, 3.0)]]),
            "M0.0 1000.0L0.0 1.0L2.0 3.0L2.0 1000.0Z"
        );
    }
}
