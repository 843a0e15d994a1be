//! Draws one picture of a file with what a query detects in it, for reports.

use std::path::Path;

use super::LocalError;
use crate::frame::Frame;
use crate::media::Video;
use crate::output::{annotate, draw_scope};
use crate::pipeline::{Knobs, Pipeline, QueryKind, Scope, learn_still};

/// Returns the picture of a file, within this many seconds of its beginning, in which a query tracks the most objects,
/// with boxes, names and lines; `None` if there is none. The query examines every frame in the configuration of the
/// highest quality.
///
/// # Errors
/// Returns an error if nothing of the file can be decoded.
pub fn still(path: &Path, kind: QueryKind, scope: &Scope, seconds: f64) -> Result<Option<Frame>, LocalError> {
    let mut video = Video::open(path)?;
    let still = learn_still(&mut video, 0)?;
    let (fps, config) = (video.info().fps, Knobs::default().golden());
    let mut pipeline = Pipeline::new(kind, config, still).within(scope);
    let (mut best, mut most, mut found) = (None, 0, 0);
    for number in 0_u32.. {
        let at = f64::from(number) / fps;
        if at > seconds {
            break;
        }
        let Some(mut frame) = video.frame(u64::from(number))? else { break };
        found += pipeline.process(at, &frame).len();
        let tracks = pipeline.tracks();
        if best.is_none() || tracks.len() > most {
            annotate(&mut frame, tracks, at, |_| None, &format!("{at:.2} s  {}: {found}", kind.name()));
            draw_scope(&mut frame, scope);
            (best, most) = (Some(frame), tracks.len());
        }
    }
    Ok(best)
}
