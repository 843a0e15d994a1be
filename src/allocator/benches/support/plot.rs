//! Lines in a picture, as SVG.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

/// A line with a name.
pub struct Series {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// A picture of lines.
pub struct Plot {
    pub title: &'static str,
    pub x: &'static str,
    pub y: &'static str,
    /// Both axes by powers of ten.
    pub log: bool,
    pub series: Vec<Series>,
}

const COLOURS: [RGBColor; 5] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
    RGBColor(255, 127, 14),
];

impl Plot {
    /// The picture; an empty one if there is nothing to draw.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        let drawn = if self.log { self.draw_log(&mut text) } else { self.draw_plain(&mut text) };
        match drawn {
            Ok(()) => text,
            Err(error) => format!("<p>{} cannot be drawn: {error}</p>", self.title),
        }
    }

    fn bounds(&self, of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let values = self.series.iter().flat_map(|series| series.points.iter().map(of));
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    }

    fn draw_log(&self, text: &mut String) -> Drawn {
        let (x, y) = (self.bounds(|point| point.0), self.bounds(|point| point.1));
        let (x, y) = ((x.0 * 0.9..x.1 * 1.1).log_scale(), (y.0 * 0.7..y.1 * 1.4).log_scale());
        self.draw(text, x, y, SeriesLabelPosition::UpperLeft)
    }

    fn draw_plain(&self, text: &mut String) -> Drawn {
        let (x, y) = (self.bounds(|point| point.0), self.bounds(|point| point.1));
        self.draw(text, x.0..x.1 * 1.02, 0.0..(y.1 * 1.1).max(1e-3), SeriesLabelPosition::MiddleRight)
    }

    fn draw<X, Y>(&self, text: &mut String, x: X, y: Y, legend_at: SeriesLabelPosition) -> Drawn
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
        Y::CoordDescType: ValueFormatter<f64>,
    {
        let root = SVGBackend::with_string(text, (760, 420)).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(self.title, ("sans-serif", 18))
            .margin(12)
            .margin_right(32)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(self.x).y_desc(self.y).x_labels(LABELS).y_labels(LABELS).light_line_style(TRANSPARENT);
        mesh.x_label_formatter(&|value| short(*value)).y_label_formatter(&|value| short(*value)).draw()?;
        for (series, colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            chart
                .draw_series(LineSeries::new(series.points.iter().copied(), colour.stroke_width(2)))?
                .label(series.name)
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)));
            chart.draw_series(series.points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
        }
        let mut legend = chart.configure_series_labels();
        legend.position(legend_at).background_style(WHITE.mix(0.85)).border_style(BLACK.mix(0.3));
        legend.draw().map_err(Into::into)
    }
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

/// About so many labels on an axis.
const LABELS: usize = 8;

/// A label as short as it can be: `0.5`, `20`, `5k`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{}k", value / 1000.0),
        value => format!("{}", (value * 1000.0).round() / 1000.0),
    }
}
