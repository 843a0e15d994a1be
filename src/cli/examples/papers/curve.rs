//! Plots numbers over the points of a sweep, with their intervals.

use plot::{Line, Lines};

use crate::row::Row;
use crate::{Failed, columns, find, words};

/// Returns the plot that a block describes: `AXIS := 1 | 2 | 4; TITLE = NUMBER; ...`. A point without a number on the
/// axis is a dashed horizontal line.
pub fn lines(scenario: &str, rows: &[Row], wanted: &str) -> Result<Lines, Failed> {
    let columns = columns(wanted)?;
    let [(axis, places), titles @ ..] = columns.as_slice() else { return Err("a curve has an axis".into()) };
    let Some(axis) = axis.strip_suffix(':') else {
        return Err(format!("'{axis}' is not an axis: TITLE := 1 | 2").into());
    };
    let mut at = Vec::new();
    for n in 0..rows.len() {
        at.push(words(places, n, rows.len())?);
    }
    let numbers: Vec<Option<f64>> = at.iter().map(|word| word.parse().ok()).collect();
    let known = || numbers.iter().copied().flatten();
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let mut lines = Vec::new();
    for (colour, (title, name)) in titles.iter().enumerate() {
        let mut line = Line { dots: true, colour: Some(colour), ..Line::new(*title, Vec::new()) };
        let mut across = Vec::new();
        for ((row, number), word) in rows.iter().zip(&numbers).zip(&at) {
            let spread = find(row, name)?;
            match number {
                Some(x) => {
                    line.points.push((*x, spread.mean));
                    line.whiskers.push(spread.half);
                }
                None => across.push(Line {
                    dashed: true,
                    colour: Some(colour),
                    ..Line::new(format!("{title}, {word}"), vec![(least, spread.mean), (most, spread.mean)])
                }),
            }
        }
        lines.push(line);
        lines.extend(across);
    }
    Ok(Lines::new(scenario, axis.trim(), "", lines))
}
