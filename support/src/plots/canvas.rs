//! A sheet to draw on by pixels, the first of which is in the upper left corner.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Drawn, PALE, Rgb, svg};

/// A sheet to draw on.
pub struct Canvas<'a>(Area<'a>);

/// A place on a canvas: to the right, and down.
pub type Place = (i32, i32);

/// Which part of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Where it begins.
    Start,
    /// The middle of it.
    Middle,
    /// Where it ends.
    End,
}

/// The SVG of what `draw` puts on a white canvas of so many pixels.
///
/// # Errors
/// Those of `draw`.
///
/// # Examples
/// ```
/// use support::plots::canvas::{Anchor, canvas};
/// use support::plots::{BLUE, Drawn};
///
/// # fn main() -> Drawn {
/// let svg = canvas((200, 40), |canvas| {
///     canvas.dot((20, 20), BLUE)?;
///     canvas.text("ours", (32, 20), 13, Anchor::Start)
/// })?;
/// assert!(svg.starts_with("<svg") && svg.contains("ours"));
/// # Ok(())
/// # }
/// ```
pub fn canvas(size: (u32, u32), draw: impl FnOnce(&Canvas<'_>) -> Drawn) -> Drawn<String> {
    svg(size, |area| draw(&Canvas(area)))
}

impl Canvas<'_> {
    /// Writes `text` in letters of `size` pixels, half of them above its place.
    ///
    /// # Errors
    /// If it cannot be drawn, as for the other shapes.
    pub fn text(&self, text: &str, at: Place, size: u32, anchor: Anchor) -> Drawn {
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = ("sans-serif", size)
            .into_text_style(&self.0)
            .pos(Pos::new(horizontal, VPos::Center));
        self.0.draw_text(text, &style, at)?;
        Ok(())
    }

    /// Draws a dot of ten pixels.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn dot(&self, at: Place, color: Rgb) -> Drawn {
        self.0.draw(&Circle::new(at, 5, color.filled()))?;
        Ok(())
    }

    /// Draws a thin line.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn line(&self, from: Place, to: Place, color: Rgb) -> Drawn {
        self.0.draw(&PathElement::new([from, to], color))?;
        Ok(())
    }

    /// Fills the rectangle between two corners.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn bar(&self, corners: [Place; 2], color: Rgb) -> Drawn {
        self.0.draw(&Rectangle::new(corners, color.filled()))?;
        Ok(())
    }
}

/// A logarithmic axis across a canvas, over whole decades.
#[derive(Clone, Copy, Debug)]
pub struct LogAxis {
    /// Powers of ten.
    low: f64,
    high: f64,
    left: i32,
    right: i32,
}

impl LogAxis {
    /// From `left` to `right`, over the positive ones of `values`; over one decade from 1 if there
    /// are none.
    pub fn over(values: impl IntoIterator<Item = f64>, left: i32, right: i32) -> Self {
        let is_positive = |value: &f64| *value > 0.0 && value.is_finite();
        let ends =
            values
                .into_iter()
                .filter(is_positive)
                .fold(None, |ends: Option<(f64, f64)>, value| {
                    let (low, high) = ends.unwrap_or((value, value));
                    Some((low.min(value), high.max(value)))
                });
        let (low, high) = ends.unwrap_or((1.0, 1.0));
        let low = low.log10().floor();
        LogAxis {
            low,
            high: high.log10().ceil().max(low + 1.0),
            left,
            right,
        }
    }

    /// Where `value` lies, which must be positive.
    pub fn at(&self, value: f64) -> i32 {
        let share = (value.log10() - self.low) / (self.high - self.low);
        self.left + (share * f64::from(self.right - self.left)) as i32
    }

    /// Draws a pale line from `top` to `bottom` for each decade, with its name above.
    ///
    /// # Errors
    /// If it cannot be drawn.
    pub fn draw(
        &self,
        canvas: &Canvas<'_>,
        (top, bottom): (i32, i32),
        name: impl Fn(f64) -> String,
    ) -> Drawn {
        for decade in self.low as i32..=self.high as i32 {
            let value = 10f64.powi(decade);
            let x = self.at(value);
            canvas.line((x, top), (x, bottom), PALE)?;
            canvas.text(&name(value), (x, top - 8), 11, Anchor::Middle)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_over_whole_decades() {
        let axis = LogAxis::over([0.0, 30.0, 4_000.0, f64::INFINITY], 100, 400);
        let places = [10.0, 100.0, 1_000.0, 10_000.0].map(|value| axis.at(value));
        assert_eq!(places, [100, 200, 300, 400]);
        let axis = LogAxis::over([], 0, 10);
        assert_eq!((axis.at(1.0), axis.at(10.0)), (0, 10));
    }

    #[test]
    fn texts_are_escaped() {
        let svg = canvas((100, 100), |canvas| {
            canvas.bar([(0, 0), (10, 10)], PALE)?;
            canvas.text("a < b", (5, 5), 12, Anchor::End)
        });
        let svg = svg.expect("a string can be written");
        assert!(svg.contains("a &lt; b"), "{svg}");
    }
}
