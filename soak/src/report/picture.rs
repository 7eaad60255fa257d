//! A plot by itself, as a file that documents show.

use maud::{PreEscaped, html};

use super::PLOT_STYLE;
use super::plot::{PLANE_HEIGHT, Place, Plot};

/// An SVG document with the panels of `plot` side by side. It follows the reader's choice of light
/// or dark by itself, and brings its own ground, as the page around it may not.
pub(super) fn picture(plot: &Plot) -> String {
    let (width, top) = match plot.panels.len() {
        0 | 1 => (WIDTH_ALONE, TOP_ALONE),
        _ => (WIDTH_BESIDE, TOP_BESIDE),
    };
    let panel_width = LEFT + width + RIGHT;
    let whole_width = panel_width * plot.panels.len().max(1) as f64;
    let whole_height = top + PLANE_HEIGHT + BOTTOM;
    let is_comparison = plot.panels.len() > 1;
    let svg = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="picture" width=(whole_width) height=(whole_height)
            viewBox={ "0 0 " (whole_width) " " (whole_height) }
        {
            title { (plot.title) }
            desc { (plot.explanation) }
            style { (PreEscaped(PLOT_STYLE)) }
            rect.paper width="100%" height="100%" rx="8" {}
            text.title x="20" y="30" { (plot.title) }
            @for (place, panel) in plot.panels.iter().enumerate() {
                @let left = panel_width * place as f64 + LEFT;
                @if is_comparison {
                    text.state x=(left - LEFT + 20.0) y="58" { (panel.name) }
                }
                (plot.draw(panel, Place::Picture { left, top, width }))
            }
        }
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}",
        svg.into_string()
    )
}

const WIDTH_ALONE: f64 = 600.0;
const WIDTH_BESIDE: f64 = 290.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 98.0;
/// Under the title, with and without the names of the timer queues.
const TOP_ALONE: f64 = 76.0;
const TOP_BESIDE: f64 = 92.0;
const BOTTOM: f64 = 54.0;
