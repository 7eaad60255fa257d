//! Ratios as dots with ranges, a line for each.

use plotters::prelude::*;

use super::{Area, BLACK, BLUE, Drawn, GREY, PALE, Rgb, VERMILION, svg};
use crate::numbers::number;

/// What a file shows.
#[derive(Debug)]
pub struct Ratios {
    /// Above the lines.
    pub title: String,
    /// Below the axis.
    pub axis: String,
    /// From top to bottom.
    pub lines: Vec<Ratio>,
}

/// One line.
#[derive(Debug)]
pub struct Ratio {
    /// To the left.
    pub title: String,
    /// The dot.
    pub middle: f64,
    /// The line through the dot: the least and the greatest.
    pub range: (f64, f64),
    /// Whether it counts, and for whom: the dot is filled, and of another colour.
    pub verdict: Verdict,
}

/// What a ratio says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Blue.
    Won,
    /// Red.
    Lost,
    /// Grey, and hollow.
    Undecided,
}

const WIDTH: i32 = 1000;
/// Where the axis begins.
const LEFT: i32 = 440;
const RIGHT: i32 = 40;
const TOP: i32 = 50;
const LINE: i32 = 22;
const BOTTOM: i32 = 60;

impl Verdict {
    fn color(self) -> Rgb {
        match self {
            Verdict::Won => BLUE,
            Verdict::Lost => VERMILION,
            Verdict::Undecided => GREY,
        }
    }
}

impl Ratios {
    /// The SVG of it, with a logarithmic axis. Ratios that are not positive are left out.
    ///
    /// # Errors
    /// If it cannot be drawn.
    ///
    /// # Examples
    /// ```
    /// use support::plots::ratios::{Ratio, Ratios, Verdict};
    ///
    /// # fn main() -> support::plots::Drawn {
    /// let ratios = Ratios {
    ///     title: "To tokio".to_owned(),
    ///     axis: "the smaller the better".to_owned(),
    ///     lines: vec![Ratio {
    ///         title: "spawn".to_owned(),
    ///         middle: 0.5,
    ///         range: (0.4, 0.7),
    ///         verdict: Verdict::Won,
    ///     }],
    /// };
    /// assert!(ratios.svg()?.contains("spawn"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn svg(&self) -> Drawn<String> {
        let drawable = |line: &&Ratio| line.range.0 > 0.0 && line.range.1.is_finite();
        let lines: Vec<&Ratio> = self.lines.iter().filter(drawable).collect();
        let bottom = TOP + LINE * lines.len() as i32;
        // Whole decades, with what all is measured by among them.
        let low = lines
            .iter()
            .fold(1.0, |low: f64, line| low.min(line.range.0));
        let high = lines
            .iter()
            .fold(1.0, |high: f64, line| high.max(line.range.1));
        let (low, high) = (
            low.log10().floor() as i32,
            (high.log10().ceil() as i32).max(1),
        );
        let x = |ratio: f64| {
            let place = (ratio.log10() - f64::from(low)) / f64::from(high - low);
            LEFT + (place * f64::from(WIDTH - LEFT - RIGHT)).round() as i32
        };
        svg((WIDTH as u32, (bottom + BOTTOM) as u32), |area| {
            text(&area, &self.title, (20, 12), 20)?;
            for exponent in low..=high {
                let ratio = 10_f64.powi(exponent);
                let (at, color) = (x(ratio), if exponent == 0 { BLACK } else { PALE });
                area.draw(&PathElement::new(vec![(at, TOP), (at, bottom)], color))?;
                text(&area, &number(ratio), (at - 10, bottom + 8), 13)?;
            }
            text(&area, &self.axis, (LEFT, bottom + 30), 14)?;
            for (place, line) in lines.iter().enumerate() {
                let y = TOP + LINE * place as i32 + LINE / 2;
                let color = line.verdict.color();
                text(&area, &line.title, (20, y - 8), 14)?;
                let ends = vec![(x(line.range.0), y), (x(line.range.1), y)];
                area.draw(&PathElement::new(ends, color.stroke_width(2)))?;
                let (at, is_decided) = ((x(line.middle), y), line.verdict != Verdict::Undecided);
                area.draw(&Circle::new(
                    at,
                    5,
                    if is_decided { color } else { WHITE }.filled(),
                ))?;
                area.draw(&Circle::new(at, 5, color.stroke_width(2)))?;
            }
            Ok(())
        })
    }
}

fn text(area: &Area<'_>, text: &str, at: (i32, i32), size: i32) -> Drawn {
    area.draw(&Text::new(text.to_owned(), at, ("sans-serif", size)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ratio_has_a_line_and_only_decided_ones_are_filled() {
        let line = |title: &str, verdict| Ratio {
            title: title.to_owned(),
            middle: 2.0,
            range: (1.5, 3.0),
            verdict,
        };
        let nothing = Ratio {
            range: (0.0, 0.0),
            ..line("nothing", Verdict::Won)
        };
        let ratios = Ratios {
            title: "all".to_owned(),
            axis: "ratio".to_owned(),
            lines: vec![
                line("one", Verdict::Lost),
                line("two", Verdict::Undecided),
                nothing,
            ],
        };
        let svg = ratios.svg().expect("a string can be written");
        for text in ["all", "ratio", "one", "two"] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains("nothing"));
        let filled = |color: &str| {
            svg.matches(&format!("r=\"5\" opacity=\"1\" fill=\"{color}\""))
                .count()
        };
        assert_eq!((filled("#D55E00"), filled("#FFFFFF")), (1, 1), "{svg}");
    }
}
