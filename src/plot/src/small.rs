//! Small pictures of lines in few bytes, for pages that have many of them: plots with the ends of their axes, and lines
//! in the cells of a table.
//!
//! They inherit the colour of the page's text, and their strokes come from its style sheet: they are for a
//! [`crate::Page`] only.

use std::fmt::Write as _;

use crate::lines::{Line, is_finite, short, thinned};
use crate::{colour_class, escape};

/// A small plot. Its lines have their colours as in [`crate::Lines`]; the page has one legend for all plots.
#[derive(Clone, Debug, Default)]
pub struct Small {
    /// Title above the plot, with the unit of the values.
    pub title: String,
    /// Lines of the plot.
    pub lines: Vec<Line>,
    /// The most points of a line.
    pub points: usize,
}

/// Width and height of a plot in units; two are a pixel.
const SIZE: (f64, f64) = (672.0, 300.0);
/// Area of the values in a plot: left, top, right, bottom.
const INSIDE: [f64; 4] = [84.0, 44.0, 660.0, 260.0];
/// Width and height of a sparkline in units.
const SPARK: (f64, f64) = (240.0, 48.0);

impl Small {
    /// Returns the plot as SVG; a paragraph of text instead if there is nothing to draw.
    pub fn svg(&self) -> String {
        let Some((x, y)) = bounds(&self.lines) else {
            return format!("<p class=\"empty\">{}: nothing to draw</p>", escape(&self.title));
        };
        let ((w, h), [left, top, right, bottom]) = (SIZE, INSIDE);
        let title = escape(&self.title);
        let mut svg = format!(
            "<svg viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{title}\" font-size=\"24\" fill=\"currentColor\">\
             <text x=\"0\" y=\"26\">{title}</text><path class=\"axes\" d=\"M{left} {top}V{bottom}H{right}\"/>\
             <g text-anchor=\"end\"><text x=\"{0}\" y=\"{1}\">{2}</text><text x=\"{0}\" y=\"{bottom}\">{3}</text>\
             <text x=\"{right}\" y=\"{h}\" dy=\"-14\">{4} s</text></g><text x=\"{left}\" y=\"{h}\" dy=\"-14\">{5}</text>",
            left - 8.0,
            top + 18.0,
            short(rounded(y.1)),
            short(rounded(y.0)),
            short(rounded(x.1)),
            short(rounded(x.0)),
        );
        for (n, line) in self.lines.iter().enumerate() {
            drawn(&mut svg, line, n, self.points, (x, y), INSIDE);
        }
        svg + "</svg>"
    }
}

/// Returns lines without axes as SVG, as high as a line of text, with at most `points` points each; empty if there is
/// nothing to draw. `shows` describes them for readers who cannot see them.
pub fn sparkline(lines: &[Line], shows: &str, points: usize) -> String {
    let Some(ranges) = bounds(lines) else { return String::new() };
    let (w, h) = SPARK;
    let mut svg = format!(
        "<svg width=\"{}\" height=\"{}\" viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{}\">",
        w / 2.0,
        h / 2.0,
        escape(shows)
    );
    for (n, line) in lines.iter().enumerate() {
        drawn(&mut svg, line, n, points, ranges, [2.0, 3.0, w - 2.0, h - 3.0]);
    }
    svg + "</svg>"
}

type Range = (f64, f64);

/// Returns the ranges of x and y. The range of y begins at 0 unless a value is negative.
fn bounds(lines: &[Line]) -> Option<(Range, Range)> {
    let points = || lines.iter().flat_map(|line| &line.points).filter(|point| is_finite(point));
    let range = |of: fn(&(f64, f64)) -> f64| {
        points()
            .map(of)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (x, y) = (range(|point| point.0), range(|point| point.1));
    let (low, high) = (y.0.min(0.0), y.1);
    let high = if high > low { high } else { low + 1.0 };
    x.0.is_finite().then_some(((x.0, x.1.max(x.0 + 1e-9)), (low, high)))
}

/// Draws a line as one path, in whole units from point to point.
fn drawn(svg: &mut String, line: &Line, n: usize, most: usize, (x, y): (Range, Range), inside: [f64; 4]) {
    let [left, top, right, bottom] = inside;
    let at = |&(px, py): &(f64, f64)| {
        let across = (px - x.0) / (x.1 - x.0) * (right - left);
        let up = (py - y.0) / (y.1 - y.0) * (bottom - top);
        ((left + across).round() as i64, (bottom - up).round() as i64)
    };
    let mut before: Option<(i64, i64)> = None;
    let mut path = String::new();
    for point in thinned(&line.points, most).iter().map(at) {
        // Writing to a string cannot fail, here and below.
        let _ = match before {
            None => write!(path, "M{} {}", point.0, point.1),
            Some(before) if before == point => Ok(()),
            Some((px, py)) => write!(path, "l{} {}", point.0 - px, point.1 - py),
        };
        before = Some(point);
    }
    // A single point is a line of length 0, which round ends make visible.
    if !path.contains('l') {
        path.push_str("h0");
    }
    // The properties that all lines share are in the page's style sheet.
    let dashed = if line.dashed { " dashed" } else { "" };
    let _ = write!(
        svg,
        "<path class=\"{}{dashed}\" d=\"{}\"/>",
        colour_class(line.colour.unwrap_or(n)),
        path.replace(" -", "-")
    );
}

/// Rounds to three significant digits.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let unit = 10_f64.powf(value.abs().log10().floor() - 2.0);
    (value / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pictures_are_small() {
        let line = Line::new("a", (0..3600).map(|n| (f64::from(n), f64::from(n % 97))).collect());
        let dashed = Line { dashed: true, ..line.clone() };
        let svg = Small { title: "<waits> (s)".to_owned(), lines: vec![line.clone(), dashed], points: 100 }.svg();
        assert!(svg.len() < 2_300 && svg.contains("&lt;waits&gt;") && svg.contains(">3.6k s<"), "{}: {svg}", svg.len());
        let spark = sparkline(&[line], "a", 40);
        assert!(spark.len() < 500 && spark.starts_with("<svg"), "{}", spark.len());
    }

    #[test]
    fn what_cannot_be_drawn_says_so() {
        assert_eq!(sparkline(&[], "x", 9), "");
        assert!(Small::default().svg().contains("nothing to draw"));
        let one = Line::new("", vec![(1.0, 0.0), (f64::NAN, 2.0)]);
        let svg = Small { lines: vec![one], points: 10, ..Small::default() }.svg();
        assert!(svg.contains("h0") && !svg.contains("NaN"), "{svg}");
    }
}
