//! Losses and cores over time as one SVG picture.

use plotters::prelude::*;

use crate::scheduler::{JobStatus, Point, Status};

const SIZE: (u32, u32) = (960, 640);
/// More jobs than this have no line in the legend.
const LEGEND_MAX: usize = 24;

/// A failure of the drawing library, in words.
type Failed = Box<dyn std::error::Error>;

/// The picture: above each job's normalised loss (0 is the lowest loss that it reached), below its cores.
pub fn svg(status: &Status) -> String {
    let mut text = String::new();
    match draw(status, &mut text) {
        Ok(()) => text,
        Err(error) => {
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><text x=\"9\" y=\"20\">no picture: {error}</text></svg>")
        }
    }
}

fn draw(status: &Status, text: &mut String) -> Result<(), Failed> {
    let jobs: Vec<&JobStatus> = status.jobs.iter().filter(|j| !j.history.is_empty()).collect();
    let ends = jobs.iter().filter_map(|j| j.history.last()).map(|p| p.seconds);
    let end = ends.fold(1.0_f64, f64::max);
    let begin = jobs.iter().filter_map(|j| j.history.first()).map(|p| p.seconds).fold(end, f64::min).min(end - 1.0);
    let most = jobs.iter().flat_map(|j| &j.history).map(|p| p.cores).fold(1.0_f64, f64::max);
    let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let title = format!("policy {}: {} jobs", status.policy, status.jobs.len());
    let area = area.titled(&title, ("sans-serif", 18))?;
    let (losses, cores) = area.split_vertically(SIZE.1 * 6 / 10);
    let mut upper = ChartBuilder::on(&losses);
    let upper = upper.margin(8).x_label_area_size(24).y_label_area_size(52);
    let mut upper = upper.build_cartesian_2d(begin..end, 0.0..1.05)?;
    upper.configure_mesh().y_desc("normalised loss").light_line_style(WHITE).draw()?;
    for (place, job) in jobs.iter().enumerate() {
        let colour = Palette99::pick(place).to_rgba();
        let line = LineSeries::new(normalised(&job.history), colour.stroke_width(2));
        let drawn = upper.draw_series(line)?;
        if place < LEGEND_MAX {
            drawn.label(&job.name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 14, y)], colour));
        }
    }
    upper
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    let mut lower = ChartBuilder::on(&cores);
    let lower = lower.margin(8).x_label_area_size(32).y_label_area_size(52);
    let mut lower = lower.build_cartesian_2d(begin..end, 0.0..most * 1.05)?;
    lower.configure_mesh().x_desc("seconds").y_desc("cores").light_line_style(WHITE).draw()?;
    for (place, job) in jobs.iter().enumerate() {
        let colour = Palette99::pick(place).to_rgba();
        lower.draw_series(LineSeries::new(steps(&job.history), colour.stroke_width(2)))?;
    }
    area.present()?;
    Ok(())
}

/// A history's losses, from 1 for the first to 0 for the lowest.
fn normalised(history: &[Point]) -> Vec<(f64, f64)> {
    let first = history.first().map_or(0.0, |p| p.loss);
    let lowest = history.iter().map(|p| p.loss).fold(f64::INFINITY, f64::min);
    let range = if first > lowest { first - lowest } else { 1.0 };
    history.iter().map(|p| (p.seconds, ((p.loss - lowest) / range).clamp(0.0, 1.05))).collect()
}

/// A line that is level from each point to the next.
fn steps(history: &[Point]) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(2 * history.len());
    for point in history {
        if let Some((_, last)) = line.last().copied() {
            line.push((point.seconds, last));
        }
        line.push((point.seconds, point.cores));
    }
    line
}
