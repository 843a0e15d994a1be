//! Findings of queries, and the findings that a perfect query would have.

use serde::{Deserialize, Serialize};

use super::query::QueryKind;
use crate::frame::Rect;
use crate::scene::Truth;

/// A finding of a query: a line of its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Time in seconds of the stream.
    pub at: f64,
    /// Label of the object: `vehicle`, `person`, a kind, or the text of a plate.
    pub label: String,
    /// Number of the object in its stream.
    pub track: u64,
    /// Name of the line that the object crossed; empty for the default line across the middle, and for a place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub line: String,
    /// Direction of the crossing, by the line's names: down or up across the middle; empty for a place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub direction: String,
    /// Box of the object at that time.
    pub place: Rect,
}

/// Returns the findings that a perfect query of this kind has in a scene between two times. The scene repeats itself.
pub fn true_findings(truth: &Truth, kind: QueryKind, from: f64, to: f64) -> Vec<Finding> {
    let period = truth.scene.seconds;
    let mut out = Vec::new();
    let place = |object: &crate::scene::Object, at: f64| object.at(at, truth.line, period);
    if kind == QueryKind::Tracks {
        for second in (from.ceil() as u64)..(to.ceil() as u64) {
            let at = second as f64;
            for (object, place) in truth.visible(at) {
                let label = if object.kind.is_vehicle() { "vehicle" } else { "person" }.to_owned();
                let track = u64::from(object.id);
                out.push(Finding { at, label, track, line: String::new(), direction: String::new(), place });
            }
        }
        return out;
    }
    for object in &truth.objects {
        let label = match kind {
            QueryKind::Cars if object.kind.is_vehicle() => "vehicle".to_owned(),
            QueryKind::People if !object.kind.is_vehicle() => "person".to_owned(),
            QueryKind::Kinds => object.kind.name().to_owned(),
            QueryKind::Plates => match &object.plate {
                Some(plate) => plate.clone(),
                None => continue,
            },
            _ => continue,
        };
        let direction = if object.speed > 0.0 { "down" } else { "up" }.to_owned();
        let mut turn = ((from - object.crosses) / period).ceil().max(0.0);
        while object.crosses + turn * period < to {
            let at = object.crosses + turn * period;
            let (label, direction) = (label.clone(), direction.clone());
            let (track, line) = (u64::from(object.id), String::new());
            out.push(Finding { at, label, track, line, direction, place: place(object, at) });
            turn += 1.0;
        }
    }
    out.sort_by(|a, b| a.at.total_cmp(&b.at));
    out
}
