//! Gantt charts: strips over time, in a row for each place.

use std::fmt::Write as _;

use crate::{colour, escape};

/// A strip of a Gantt chart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strip {
    /// Index of the strip's row.
    pub row: usize,
    /// Index of the strip's owner, which determines the colour.
    pub owner: usize,
    /// Start of the strip, in seconds.
    pub from: f64,
    /// End of the strip, in seconds.
    pub to: f64,
}

/// A Gantt chart. Strips of a row that overlap are drawn in lanes of their own.
#[derive(Clone, Debug, Default)]
pub struct Strips {
    /// Title above the chart.
    pub title: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the owners.
    pub owners: Vec<String>,
    /// Strips in any order.
    pub strips: Vec<Strip>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 90.0;
const ROW: f64 = 26.0;
/// Height of the title above the legend.
const TITLE: f64 = 30.0;
const LEGEND_ROW: f64 = 18.0;
/// The most owners in the legend.
const OWNERS: usize = 12;
/// The most strips that are drawn.
const MOST: usize = 8_000;

impl Strips {
    /// Returns the chart as SVG.
    pub fn svg(&self) -> String {
        let end = self.strips.iter().map(|strip| strip.to).fold(0.0, f64::max);
        let mut legend = String::new();
        let top = self.legend(&mut legend);
        let height = top + ROW * self.rows.len() as f64 + 30.0;
        let mut svg = format!(
            "<svg width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"11\">\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\
             <text x=\"{}\" y=\"20\" font-size=\"15\" text-anchor=\"middle\">{}</text>",
            WIDTH / 2.0,
            escape(&self.title)
        );
        svg += &legend;
        let wide = (WIDTH - LEFT - 20.0) / end.max(1e-9);
        for (row, name) in self.rows.iter().enumerate() {
            let y = top + ROW * row as f64;
            // Writing to a string cannot fail.
            let _ = write!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 16.0,
                escape(name)
            );
            self.row(&mut svg, row, y, wide);
        }
        let _ = write!(
            svg,
            "<text x=\"{LEFT}\" y=\"{0}\">0 seconds</text><text x=\"{1}\" y=\"{0}\" text-anchor=\"end\">{end:.0} seconds</text></svg>",
            height - 10.0,
            WIDTH - 20.0
        );
        svg
    }

    /// Draws the legend, and returns its lower end.
    fn legend(&self, svg: &mut String) -> f64 {
        let (mut x, mut y) = (LEFT, TITLE + 2.0);
        for (n, name) in self.owners.iter().enumerate().take(OWNERS) {
            let ((r, g, b), wide) = (colour(n), 24.0 + 6.5 * name.chars().count() as f64);
            if x > LEFT && x + wide > WIDTH {
                (x, y) = (LEFT, y + LEGEND_ROW);
            }
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"rgb({r},{g},{b})\"/><text x=\"{}\" y=\"{}\">{}</text>",
                x + 14.0,
                y + 9.0,
                escape(name)
            );
            x += wide;
        }
        y + LEGEND_ROW + 4.0
    }

    fn row(&self, svg: &mut String, row: usize, y: f64, wide: f64) {
        let mut own: Vec<&Strip> = self.strips.iter().take(MOST).filter(|strip| strip.row == row).collect();
        own.sort_by(|a, b| a.from.total_cmp(&b.from));
        let mut lanes: Vec<f64> = Vec::new();
        let mut placed = Vec::with_capacity(own.len());
        for strip in own {
            let lane = lanes.iter().position(|end| *end <= strip.from).unwrap_or(lanes.len());
            match lanes.get_mut(lane) {
                Some(end) => *end = strip.to,
                None => lanes.push(strip.to),
            }
            placed.push((strip, lane));
        }
        let high = (ROW - 4.0) / lanes.len().max(1) as f64;
        for (strip, lane) in placed {
            let (r, g, b) = colour(strip.owner);
            let _ = write!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"rgb({r},{g},{b})\"/>",
                LEFT + strip.from * wide,
                y + high * lane as f64,
                ((strip.to - strip.from) * wide).max(0.5),
                (high - 0.3).max(0.4)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_strips_get_lanes() {
        let strip = |from: f64, to: f64| Strip { row: 0, owner: 1, from, to };
        let strips = Strips {
            title: "a < b".to_owned(),
            rows: vec!["agent0".to_owned()],
            owners: vec!["f".to_owned()],
            strips: vec![strip(0.0, 5.0), strip(2.0, 6.0), strip(5.0, 9.0)],
        };
        let svg = strips.svg();
        assert!(svg.contains("a &lt; b"));
        // Two lanes: the third strip follows the first.
        assert_eq!(svg.matches("y=\"54.0\"").count(), 2);
        assert_eq!(svg.matches("y=\"65.0\"").count(), 1);
    }
}
