//! Lines over an x axis.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::colour;

/// A line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What it is; lines without a name are not in the legend.
    pub name: String,
    /// x and y; points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// Dashed: a target rather than a measurement.
    pub dashed: bool,
    /// A mark at each point.
    pub dots: bool,
    /// Half of each point's interval, drawn as an upright line; none, or as many as there are points.
    pub whiskers: Vec<f64>,
    /// Which colour; by its place if unset.
    pub colour: Option<usize>,
}

impl Line {
    /// A plain line.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Line {
        Line { name: name.into(), points, ..Line::default() }
    }
}

/// A picture of lines.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Above the picture.
    pub title: String,
    /// Below the x axis.
    pub x: String,
    /// Beside the y axis.
    pub y: String,
    /// Both axes by powers of ten.
    pub log: bool,
    /// The lines, drawn in their order.
    pub lines: Vec<Line>,
    /// Width and height in pixels; 760 by 420 if unset.
    pub size: Option<(u32, u32)>,
}

/// About so many labels on an axis.
const LABELS: usize = 8;
/// More points than this on a line are thinned out: no screen shows them.
const POINTS: usize = 1500;
/// Lines with a name in the legend.
const LEGEND: usize = 12;

type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Lines {
    /// A picture of these lines; all else is as it comes.
    pub fn new(title: &str, x: &str, y: &str, lines: Vec<Line>) -> Lines {
        Lines { title: title.to_owned(), x: x.to_owned(), y: y.to_owned(), lines, ..Lines::default() }
    }

    /// The picture; a sentence instead if there is nothing to draw.
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
        // An axis must not be a point.
        let (x_most, y_most) = (x.1.max(x.0 + 1e-9), top.max(y.0 + 1e-9));
        let drawn = if self.log {
            let (x, y) = ((x.0 * 0.9..x_most * 1.1).log_scale(), (y.0 * 0.7..y_most * 1.4).log_scale());
            self.draw(&mut text, x, y)
        } else {
            let low = if y.0 < 0.0 { y.0 * 1.1 } else { 0.0 };
            // Where all is 0 the axis goes to 1: labels of next to nothing would all read the same.
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
        let root = SVGBackend::with_string(text, self.size.unwrap_or((760, 420))).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .margin_right(32)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(&self.x).y_desc(&self.y).x_labels(LABELS).y_labels(LABELS).light_line_style(TRANSPARENT);
        mesh.x_label_formatter(&|value| short(*value)).y_label_formatter(&|value| short(*value)).draw()?;
        for (n, line) in self.lines.iter().enumerate() {
            let (r, g, b) = colour(line.colour.unwrap_or(n));
            let style = RGBColor(r, g, b).stroke_width(if line.dashed { 1 } else { 2 });
            let points = thinned(&line.points);
            let drawn = match line.dashed {
                true => chart.draw_series(DashedLineSeries::new(points.iter().copied(), 6, 4, style))?,
                false => chart.draw_series(LineSeries::new(points.iter().copied(), style))?,
            };
            if !line.name.is_empty() && n < LEGEND {
                drawn.label(&line.name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
            }
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
        }
        if self.lines.iter().take(LEGEND).all(|line| line.name.is_empty()) {
            return Ok(());
        }
        let mut legend = chart.configure_series_labels();
        legend.position(self.emptiest()).background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3));
        legend.draw().map_err(Into::into)
    }

    /// The corner in which the fewest points lie: the legend hides least there.
    fn emptiest(&self) -> SeriesLabelPosition {
        let log = |value: f64| if self.log { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let (x, y) = (self.bounds(|point| point.0), self.bounds(|point| point.1));
        let (x, y) = ((log(x.0), log(x.1)), (log(y.0.min(if self.log { y.0 } else { 0.0 })), log(y.1)));
        let part = |value: f64, (low, high): (f64, f64)| (log(value) - low) / (high - low).max(1e-9);
        let mut points = [0.0; 4];
        for line in &self.lines {
            let own: Vec<_> = line.points.iter().filter(|point| is_finite(point)).collect();
            for point in &own {
                let (right, up) = (part(point.0, x), part(point.1, y));
                // A legend is about a third as wide as the picture.
                if !(0.35..0.65).contains(&right) {
                    points[usize::from(right > 0.5) + 2 * usize::from(up < 0.5)] += 1.0 / own.len() as f64;
                }
            }
        }
        let corners = [
            SeriesLabelPosition::UpperLeft,
            SeriesLabelPosition::UpperRight,
            SeriesLabelPosition::LowerLeft,
            SeriesLabelPosition::LowerRight,
        ];
        let best = points.iter().zip(corners).min_by(|a, b| a.0.total_cmp(b.0));
        best.map_or(SeriesLabelPosition::UpperLeft, |(_, corner)| corner)
    }
}

fn is_finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// So few points that a screen can show them: the mean of each stretch.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite: Vec<(f64, f64)> = points.iter().copied().filter(is_finite).collect();
    let stretch = finite.len().div_ceil(POINTS).max(1);
    let mean = |part: &[(f64, f64)]| {
        let n = part.len() as f64;
        (part.iter().map(|p| p.0).sum::<f64>() / n, part.iter().map(|p| p.1).sum::<f64>() / n)
    };
    finite.chunks(stretch).map(mean).collect()
}

/// A label as short as it can be: `0.5`, `20`, `5k`.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", value / 1e6),
        size if size >= 1000.0 => format!("{}k", value / 1000.0),
        _ => format!("{}", (value * 1000.0).round() / 1000.0),
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
