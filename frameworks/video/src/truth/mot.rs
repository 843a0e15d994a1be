//! Ground truth in the format of the MOT challenge: a line `frame,id,left,top,width,height,confidence,class,visibility`
//! for each box, in pixels, frames from 1. The last three may be missing. A class or a visibility of -1 is not given,
//! as in test files of the challenges from 2016 on.
//!
//! The files of the first challenge (2015) have ten fields, the last three of which are a place in the world: all their
//! boxes are people.

use std::path::{Path, PathBuf};

use crate::frame::Rect;

/// Maximum number of boxes of a file.
const BOXES_MAX: usize = 2_000_000;
/// Maximum size of a file in bytes.
const BYTES_MAX: u64 = 256 << 20;
/// Classes of people in the format; those of vehicles follow.
const PEOPLE: [i64; 2] = [1, 7];
const VEHICLES: [i64; 3] = [3, 4, 5];
/// Number of fields with which a line ends with a place in the world instead of class and visibility.
const FIELDS_WITH_PLACE: usize = 10;

/// The error of a file that cannot be read or is invalid.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct MotError {
    /// Path of the file.
    path: PathBuf,
    /// Description of the error.
    what: String,
}

/// A box of the ground truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelledBox {
    /// Number of the frame, from 0.
    pub frame: u64,
    /// Id of the object.
    pub id: u64,
    /// Whether the object is a vehicle; `None` if the file does not say.
    pub vehicle: Option<bool>,
    /// Position of the box, in fractions of the picture.
    pub place: Rect,
    /// Visible fraction of the object, 0 to 1.
    pub visible: f32,
}

/// Reads a file about pictures of this width and height, sorted by frame. Boxes that are marked as not counting
/// (confidence 0), and those of neither people nor vehicles, are skipped.
///
/// # Errors
/// Returns an error if the file cannot be read, or a line breaks the format.
pub fn read(path: &Path, size: (usize, usize)) -> Result<Vec<LabelledBox>, MotError> {
    let bad = |what: String| MotError { path: path.to_owned(), what };
    let bytes = std::fs::metadata(path).map_err(|e| bad(e.to_string()))?.len();
    if bytes > BYTES_MAX {
        return Err(bad(format!("{bytes} bytes, and {BYTES_MAX} is the limit")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    parse(&text, size).map_err(bad)
}

fn parse(text: &str, (width, height): (usize, usize)) -> Result<Vec<LabelledBox>, String> {
    let mut out = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let values: Result<Vec<f64>, _> = line.split(',').map(|word| word.trim().parse::<f64>()).collect();
        let values = values.map_err(|_| format!("line {number}: a field is not a number"))?;
        let [frame, id, x, y, w, h] = values.get(..6).and_then(|v| v.try_into().ok()).ok_or_else(|| {
            format!("line {number}: {} fields, and at least 6 are needed: frame,id,left,top,width,height", values.len())
        })?;
        let sane = frame >= 1.0 && id.is_finite() && w > 0.0 && h > 0.0 && x.is_finite() && y.is_finite();
        if !sane {
            return Err(format!("line {number}: frames count from 1, and a box has a width and a height"));
        }
        let has_place = values.len() == FIELDS_WITH_PLACE;
        let vehicle = match values.get(7).map(|class| *class as i64) {
            _ if has_place => Some(false),
            None | Some(..0) => None,
            Some(class) if PEOPLE.contains(&class) => Some(false),
            Some(class) if VEHICLES.contains(&class) => Some(true),
            Some(_) => continue,
        };
        if values.get(6).is_some_and(|confidence| *confidence == 0.0) {
            continue;
        }
        let (sx, sy) = (width.max(1) as f64, height.max(1) as f64);
        let place = Rect { x: (x / sx) as f32, y: (y / sy) as f32, w: (w / sx) as f32, h: (h / sy) as f32 };
        let Some(place) = place.clipped() else { continue };
        let visible = values.get(8).filter(|v| !has_place && **v >= 0.0).map_or(1.0, |v| v.min(1.0) as f32);
        out.push(LabelledBox { frame: frame as u64 - 1, id: id.max(0.0) as u64, vehicle, place, visible });
        if out.len() > BOXES_MAX {
            return Err(format!("more than {BOXES_MAX} boxes"));
        }
    }
    out.sort_by_key(|label| (label.frame, label.id));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_lengths() {
        let text = "2,5,10,20,30,40,1,1,0.5\n1,4,0,0,10,10\n1,9,0,0,10,10,0,1,1\n1,8,0,0,9,9,1,9,1\n";
        let read = parse(text, (100, 200)).expect("good");
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].frame, read[0].id, read[0].vehicle), (0, 4, None));
        let place = read[1].place;
        assert!((place.x - 0.1).abs() < 1e-5 && (place.h - 0.2).abs() < 1e-5 && read[1].visible == 0.5);
        let person = parse("1,9,49,15,31.5,75.1,1,-4.1554,-7.3591,0\n", (100, 200)).expect("good")[0];
        assert_eq!((person.id, person.vehicle, person.visible), (9, Some(false), 1.0));
        // Fields that are not given are -1.
        for text in ["1,2,0,0,10,10,1,-1,-1\n", "1,2,0,0,10,10,-1,-1\n", "1,2,0,0,10,10,-1\n"] {
            let read = parse(text, (100, 200)).expect(text);
            let read: Vec<(Option<bool>, f32)> = read.iter().map(|label| (label.vehicle, label.visible)).collect();
            assert_eq!(read, [(None, 1.0)], "{text}");
        }
        for (text, says) in
            [("1,2,3\n", "at least 6"), ("a,1,1,1,1,1\n", "is not a number"), ("0,1,1,1,1,1\n", "from 1")]
        {
            assert!(parse(text, (10, 10)).expect_err(text).contains(says));
        }
    }
}
