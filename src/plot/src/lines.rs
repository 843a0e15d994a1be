//! Plots of lines over an x axis.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use crate::colour;

/// A line of a plot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Name of the line in the legend; a line with an empty name is not there.
    pub name: String,
    /// Points as x and y. Points that are not finite are not drawn.
    pub points: Vec<(f64, f64)>,
    /// Whether the line is dashed, as for a target rather than a measurement.
    pub dashed: bool,
    /// Whether each point is marked by a dot.
    pub dots: bool,
    /// Half of each point's interval, drawn as a vertical line; empty, or as many as there are points.
    pub whiskers: Vec<f64>,
    /// Number of the line's colour; its position among the lines if unset.
    pub colour: Option<usize>,
}

impl Line {
    /// Creates a solid line without marks.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { name: name.into(), points, ..Line::default() }
    }
}

/// A plot of lines, with a legend below them.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Title above the plot.
    pub title: String,
    /// Title of the x axis.
    pub x: String,
    /// Title of the y axis.
    pub y: String,
    /// Whether both axes are logarithmic.
    pub log: bool,
    /// Lines in the order in which they are drawn.
    pub lines: Vec<Line>,
    /// Meaning of dashed lines in the legend; not shown if empty.
    pub dashes: String,
    /// Width and height in pixels, without the legend; 760 by 420 if unset.
    pub size: Option<(u32, u32)>,
}

/// Approximate number of labels on an axis.
const LABELS: usize = 8;
/// The most points of a line that are drawn; more are thinned out, because a plot has no more columns for them.
const POINTS: usize = 600;
/// The most lines in the legend.
const LEGEND: usize = 12;
/// Height of a row of the legend, in pixels.
const ROW: i32 = 20;
/// Approximate width of a letter in the legend, in pixels.
const LETTER: i32 = 8;

type Drawn = Result<(), Box<dyn std::error::Error>>;
/// The chart that a line is drawn on.
type Chart<'a, 'b, X, Y> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>;

impl Lines {
    /// Creates a plot of these lines, with linear axes and the default size.
    pub fn new(title: &str, x: &str, y: &str, lines: Vec<Line>) -> Lines {
        Lines { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), lines, ..Lines::default() }
    }

    /// Returns the plot as SVG; a paragraph of text instead if there is nothing to draw.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        let (x, y) = (self.bounds(|point| point.0), self.bounds(|point| point.1));
        if !(x.0.is_finite() && y.0.is_finite()) {
            return format!("<p class=\"empty\">{}: nothing to draw</p>", crate::escape(&self.title));
        }
        let tops = self
            .lines
            .iter()
            .flat_map(|line| line.points.iter().zip(&line.whiskers).map(|(point, half)| point.1 + half));
        let top = tops.filter(|top| top.is_finite()).fold(y.1, f64::max);
        // The range of an axis must not be empty.
        let (x_most, y_most) = (x.1.max(x.0 + 1e-9), top.max(y.0 + 1e-9));
        let drawn = if self.log {
            let (x, y) = ((x.0 * 0.9..x_most * 1.1).log_scale(), (y.0 * 0.7..y_most * 1.4).log_scale());
            self.draw(&mut text, x, y)
        } else {
            let low = if y.0 < 0.0 { y.0 * 1.1 } else { 0.0 };
            // If all values are 0, the axis goes to 1: labels of a tiny range would all look the same.
            let high = if y_most <= 1e-9 { 1.0 } else { (y_most * 1.1).max(1e-3) };
            self.draw(&mut text, x.0..x_most, low..high)
        };
        match drawn {
            Ok(()) => text,
            Err(why) => format!("<p class=\"empty\">{} cannot be drawn: {why}</p>", crate::escape(&self.title)),
        }
    }

    fn bounds(&self, of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let points = self.lines.iter().flat_map(|line| &line.points).filter(|point| is_finite(point));
        points.map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }

    fn draw<X, Y>(&self, text: &mut String, x: X, y: Y) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let (width, height) = self.size.unwrap_or((760, 420));
        let (entries, rows) = self.legend(width as i32);
        let whole = (width, height + (rows * ROW) as u32 + if rows > 0 { 8 } else { 0 });
        let root = SVGBackend::with_string(text, whole).into_drawing_area();
        root.fill(&WHITE)?;
        let (plot, below) = root.split_vertically(height);
        entries.iter().try_for_each(|entry| entry.draw(&below))?;
        let mut chart = ChartBuilder::on(&plot)
            .caption(&self.title, ("sans-serif", 19))
            .margin(12)
            .margin_right(32)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.x).y_desc(&self.y).x_labels(LABELS).y_labels(LABELS).light_line_style(TRANSPARENT);
        mesh.label_style(("sans-serif", 14)).axis_desc_style(("sans-serif", 15));
        mesh.x_label_formatter(&|value| short(*value)).y_label_formatter(&|value| short(*value)).draw()?;
        for (n, line) in self.lines.iter().enumerate() {
            self.draw_line(&mut chart, line, colour(line.colour.unwrap_or(n)))?;
        }
        Ok(())
    }

    fn draw_line<X, Y>(&self, chart: &mut Chart<'_, '_, X, Y>, line: &Line, (r, g, b): (u8, u8, u8)) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let style = RGBColor(r, g, b).stroke_width(if line.dashed { 1 } else { 2 });
        let points = thinned(&line.points, POINTS);
        match line.dashed {
            true => chart.draw_series(DashedLineSeries::new(points.iter().copied(), 6, 4, style))?,
            false => chart.draw_series(LineSeries::new(points.iter().copied(), style))?,
        };
        if line.whiskers.len() == line.points.len() {
            let around =
                line.points.iter().zip(&line.whiskers).filter(|(point, half)| is_finite(point) && **half > 0.0);
            let upright = |(&(x, y), half): (&(f64, f64), &f64)| {
                let low = (y - half).max(if self.log { y * 0.7 } else { y.min(0.0) });
                PathElement::new(vec![(x, low), (x, y + half)], style)
            };
            chart.draw_series(around.map(upright))?;
        }
        if line.dots {
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, style.filled())))?;
        }
        Ok(())
    }

    /// Returns the entries of the legend, and the number of its rows.
    fn legend(&self, width: i32) -> (Vec<Entry<'_>>, i32) {
        let named = self.lines.iter().enumerate().filter(|(_, line)| !line.name.is_empty());
        let mut entries: Vec<Entry<'_>> = named
            .take(LEGEND)
            .map(|(n, line)| Entry {
                name: &line.name,
                colour: colour(line.colour.unwrap_or(n)),
                dashed: line.dashed,
                at: (0, 0),
            })
            .collect();
        if !self.dashes.is_empty() {
            entries.push(Entry { name: &self.dashes, colour: (60, 60, 60), dashed: true, at: (0, 0) });
        }
        let (mut x, mut row) = (LEFT, 0);
        for entry in &mut entries {
            let wide = 24 + LETTER * entry.name.chars().count() as i32 + 20;
            if x > LEFT && x + wide > width {
                (x, row) = (LEFT, row + 1);
            }
            entry.at = (x, row * ROW + ROW / 2);
            x += wide;
        }
        let rows = if entries.is_empty() { 0 } else { row + 1 };
        (entries, rows)
    }
}

/// Left edge of the legend in pixels, which is that of the x axis.
const LEFT: i32 = 84;

/// An entry of the legend, with its position.
struct Entry<'a> {
    name: &'a str,
    colour: (u8, u8, u8),
    dashed: bool,
    at: (i32, i32),
}

impl Entry<'_> {
    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, Shift>) -> Drawn {
        let (&Entry { name, colour: (r, g, b), dashed, at: (x, y) }, end) = (self, self.at.0 + 18);
        let style = RGBColor(r, g, b).stroke_width(2);
        let pieces = if dashed { vec![(x, x + 7), (x + 11, end)] } else { vec![(x, end)] };
        for (from, to) in pieces {
            area.draw(&PathElement::new(vec![(from, y), (to, y)], style))?;
        }
        area.draw(&Text::new(name, (end + 6, y - 7), ("sans-serif", 15)))?;
        Ok(())
    }
}

pub(crate) fn is_finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// Reduces points to at most `most`, by the mean of each stretch.
pub(crate) fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let finite: Vec<(f64, f64)> = points.iter().copied().filter(is_finite).collect();
    let stretch = finite.len().div_ceil(most.max(1)).max(1);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        (part.iter().map(|p| p.0).sum::<f64>() / n, part.iter().map(|p| p.1).sum::<f64>() / n)
    };
    finite.chunks(stretch).map(mean).collect()
}

/// Formats a label as short as possible: `0.5`, `20`, `5k`.
pub(crate) fn short(value: f64) -> String {
    let round = |value: f64| (value * 1000.0).round() / 1000.0;
    match value.abs() {
        size if size >= 1e6 => format!("{}M", round(value / 1e6)),
        size if size >= 1000.0 => format!("{}k", round(value / 1000.0)),
        size if size > 0.0 && size < 0.001 => format!("{value:.0e}"),
        _ => format!("{}", round(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_are_drawn_or_say_why_not() {
        let line = Line::new("<a>", (0..5000).map(|n| (f64::from(n), f64::from(n % 7))).collect());
        let lines = Lines { title: "t".to_owned(), lines: vec![line.clone()], ..Lines::default() };
        let svg = lines.svg();
        assert!(svg.starts_with("<svg") && svg.contains("&lt;a&gt;") && svg.len() < 200_000, "{}", svg.len());
        assert_eq!(svg, lines.svg());
        assert!(Lines::default().svg().contains("nothing to draw"));
        let flat = Line::new("flat", vec![(1.0, 0.0)]);
        let flat = Lines { lines: vec![flat], ..Lines::default() }.svg();
        assert!(flat.starts_with("<svg") && flat.contains("\n0.2\n") && !flat.contains("0.001"), "{flat}");
        let wide = Line { whiskers: vec![0.5, 0.0], ..Line::new("", vec![(1.0, 0.2), (2.0, 1.0)]) };
        let plain = Line { whiskers: Vec::new(), ..wide.clone() };
        let paths =
            |line: &Line| Lines { lines: vec![line.clone()], ..Lines::default() }.svg().matches("<polyline").count();
        assert_eq!(paths(&wide), paths(&plain) + 1);
        let odd = Line::new("odd", vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)]);
        assert!(Lines { lines: vec![odd], ..Lines::default() }.svg().contains("nothing to draw"));
    }
}
