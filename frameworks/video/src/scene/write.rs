//! Writes scenes as files: the video, and its ground truth beside it as JSON.

use std::fs;
use std::path::{Path, PathBuf};

use super::plan::{SceneError, SceneOptions, Truth};
use super::render::Renderer;
use crate::media::write::WriteError;
use crate::media::{Mp4Writer, Y4mWriter};

/// Maximum size of a ground truth file in bytes.
const TRUTH_MAX: u64 = 64 << 20;

/// Reason why a scene could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// An option is invalid.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// The video cannot be written.
    #[error("{}", path.display())]
    Video {
        /// Path of the video.
        path: PathBuf,
        /// Error of the write.
        source: WriteError,
    },
    /// The ground truth cannot be read or written.
    #[error("{}: the truth cannot be written or read: {what}", path.display())]
    Truth {
        /// Path of the file.
        path: PathBuf,
        /// Description of the error.
        what: String,
    },
}

/// Generates a scene and writes it, as Y4M if the path has that extension, as MP4 otherwise, and its ground truth with
/// the extension `.json`. Returns the truth and its path.
///
/// # Errors
/// Returns an error if the options are outside their ranges, or a file cannot be written.
pub fn generate(options: &SceneOptions, path: &Path) -> Result<(Truth, PathBuf), GenerateError> {
    let renderer = Renderer::new(Truth::plan(options)?);
    let frames = (options.seconds * options.fps).round() as u64;
    let video = |source| GenerateError::Video { path: path.to_owned(), source };
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("y4m")) {
        let mut writer = Y4mWriter::create(path, options.width, options.height, options.fps).map_err(video)?;
        for number in 0..frames {
            writer.push(&renderer.frame(number)).map_err(video)?;
        }
        writer.finish().map_err(video)?;
    } else {
        let mut writer = Mp4Writer::new(options.width, options.height, options.fps, 1.0).map_err(video)?;
        for number in 0..frames {
            writer.push(&renderer.frame(number)).map_err(video)?;
        }
        writer.finish(path).map_err(video)?;
    }
    let beside = path.with_extension("json");
    let truth = renderer.truth().clone();
    let text = serde_json::to_string_pretty(&truth).map_err(|e| e.to_string());
    let written = text.and_then(|text| fs::write(&beside, text).map_err(|e| e.to_string()));
    written.map_err(|what| GenerateError::Truth { path: beside.clone(), what })?;
    Ok((truth, beside))
}

/// Reads the ground truth of a scene.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a ground truth of this version.
pub fn read_truth(path: &Path) -> Result<Truth, GenerateError> {
    let bad = |what: String| GenerateError::Truth { path: path.to_owned(), what };
    let size = fs::metadata(path).map_err(|e| bad(e.to_string()))?.len();
    if size > TRUTH_MAX {
        return Err(bad(format!("{size} bytes, and {TRUTH_MAX} is the limit")));
    }
    let text = fs::read_to_string(path).map_err(|e| bad(e.to_string()))?;
    let truth: Truth = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
    if truth.version != 1 {
        return Err(bad(format!("version {}, and 1 is the version that is known", truth.version)));
    }
    truth.scene.check()?;
    Ok(truth)
}
