//! Plots as SVG: a thin layer over plotters that makes all of them look alike.
//!
//! [`lines`] draws whole diagrams, panels side by side on common axes, and [`ratios`] dots with ranges. What else draws
//! with plotters begins with [`svg`].

use std::error::Error;
use std::path::Path;
use std::{fs, io};

use plotters::coord::Shift;
use plotters::prelude::*;

pub mod lines;
pub mod ratios;

pub use plotters::style::RGBColor as Rgb;

/// What was drawn, or why it could not be.
pub type Drawn<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// A part of a sheet.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The first of the colours.
pub const VERMILION: Rgb = RGBColor(213, 94, 0);
/// The second of the colours.
pub const BLUE: Rgb = RGBColor(0, 114, 178);
/// The third of the colours.
pub const GREEN: Rgb = RGBColor(0, 158, 115);
/// The fourth of the colours.
pub const PURPLE: Rgb = RGBColor(204, 121, 167);
/// For what all else is seen against.
pub const BLACK: Rgb = RGBColor(0, 0, 0);
/// For what is only there to be compared with.
pub const GREY: Rgb = RGBColor(130, 130, 130);
/// For grids.
pub const PALE: Rgb = RGBColor(225, 225, 225);

/// Told apart by the colour-blind (Okabe and Ito).
const COLORS: [Rgb; 9] = [
    VERMILION,
    BLUE,
    GREEN,
    PURPLE,
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(128, 102, 64),
    RGBColor(110, 110, 110),
    BLACK,
];

/// Writes what was drawn to a file.
///
/// # Errors
/// If nothing was drawn, or the file cannot be written.
pub fn save(path: &Path, svg: Drawn<String>) -> io::Result<()> {
    fs::write(path, svg.map_err(io::Error::other)?)
}

/// The colour of what comes in this place, from 0 on.
pub fn color(place: usize) -> Rgb {
    COLORS[place % COLORS.len()]
}

/// The SVG of a white sheet of so many pixels, and what is drawn on it.
///
/// # Errors
/// Those of `draw`.
pub fn svg(size: (u32, u32), draw: impl FnOnce(Area<'_>) -> Drawn) -> Drawn<String> {
    let mut text = String::new();
    let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
    area.fill(&WHITE)?;
    draw(area.clone())?;
    area.present()?;
    drop(area);
    Ok(text)
}
