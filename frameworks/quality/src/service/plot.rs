//! Plots losses and cores over time, as SVG.

use plot::{Line, Lines};

use crate::scheduler::{JobStatus, Point, Status};

const WIDTH: u32 = 960;
/// Heights of the plots of losses, of cores, and of rows, from the top.
const HEIGHTS: [u32; 3] = [400, 300, 200];

/// Draws the plot. The upper part has each job's normalised loss (0 is the lowest loss that it reached), the lower part
/// its cores; if there are jobs on critical rows, a third part has the share of the rows with which their iterations
/// compute.
pub fn svg(status: &Status) -> String {
    let jobs: Vec<&JobStatus> = status.jobs.iter().filter(|j| !j.history.is_empty()).collect();
    let title = format!("policy {}: {} jobs", status.policy, status.jobs.len());
    let skips = jobs.iter().any(|job| job.history.iter().any(|point| point.rows.is_some()));
    let height: u32 = HEIGHTS[..2 + usize::from(skips)].iter().sum();
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">"
    );
    if jobs.is_empty() {
        return format!(
            "{head}<text x=\"9\" y=\"20\">{}: no iteration has finished yet</text></svg>",
            plot::escape(&title)
        );
    }
    let lines = |of: fn(&[Point]) -> Vec<(f64, f64)>, named: bool| {
        let line = |job: &&JobStatus| Line::new(if named { job.name.as_str() } else { "" }, of(&job.history));
        let colour = |(place, line)| Line { colour: Some(place), ..line };
        jobs.iter().map(line).enumerate().map(colour).collect::<Vec<_>>()
    };
    let picture = |title: &str, y: &str, height: u32, lines: Vec<Line>| {
        let (title, x, y) = (title.to_owned(), "seconds".to_owned(), y.to_owned());
        Lines { title, x, y, lines, size: Some((WIDTH, height)), ..Lines::default() }.svg()
    };
    let held = jobs.iter().enumerate().filter(|(_, job)| job.validation.is_some());
    let dashed = |(place, job): (usize, &&JobStatus)| Line {
        colour: Some(place),
        dashed: true,
        ..Line::new("", validation(&job.history))
    };
    let losses = lines(normalised, true).into_iter().chain(held.map(dashed)).collect();
    let is_held = jobs.iter().any(|job| job.validation.is_some());
    let unit = if is_held { "normalised loss (dashed: on validation data)" } else { "normalised loss" };
    let upper = picture(&title, unit, HEIGHTS[0], losses);
    let below = |y: u32, svg: String| format!("<g transform=\"translate(0 {y})\">{svg}</g>");
    let cores =
        below(HEIGHTS[0], picture("", "cores", HEIGHTS[1], lines(|points| steps(points, |p| Some(p.cores)), false)));
    let rows = || picture("", "share of the rows", HEIGHTS[2], lines(|points| steps(points, |p| p.rows), false));
    let rows = if skips { below(HEIGHTS[0] + HEIGHTS[1], rows()) } else { String::new() };
    format!("{head}{upper}{cores}{rows}</svg>")
}

/// Returns a history's losses, from 1 for the first to 0 for the lowest.
fn normalised(history: &[Point]) -> Vec<(f64, f64)> {
    let first = history.first().map_or(0.0, |p| p.loss);
    let lowest = history.iter().map(|p| p.loss).fold(f64::INFINITY, f64::min);
    let range = if first > lowest { first - lowest } else { 1.0 };
    history.iter().map(|p| (p.seconds, ((p.loss - lowest) / range).clamp(0.0, 1.05))).collect()
}

/// Returns a history's losses on validation data, in the same units as [`normalised`].
fn validation(history: &[Point]) -> Vec<(f64, f64)> {
    let first = history.first().map_or(0.0, |p| p.loss);
    let lowest = history.iter().map(|p| p.loss).fold(f64::INFINITY, f64::min);
    let range = if first > lowest { first - lowest } else { 1.0 };
    let held = history.iter().filter_map(|p| Some((p.seconds, p.validation_loss?)));
    held.map(|(seconds, loss)| (seconds, ((loss - lowest) / range).clamp(0.0, 1.05))).collect()
}

/// Returns a line that is level from each point to the next.
fn steps(history: &[Point], of: fn(&Point) -> Option<f64>) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(2 * history.len());
    for (point, value) in history.iter().filter_map(|point| Some((point, of(point)?))) {
        if let Some((_, last)) = line.last().copied() {
            line.push((point.seconds, last));
        }
        line.push((point.seconds, value));
    }
    line
}
