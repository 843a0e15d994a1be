//! Detects people and vehicles with a neural network that an ONNX file contains.
//!
//! A picture that is larger than the network's input is examined in overlapping tiles. The runtime is in builds with
//! the feature `network` only; other builds report this when a file is opened. Networks are not trained here.

mod decode;
#[cfg(feature = "network")]
mod model;
#[cfg(not(feature = "network"))]
mod no_model;
mod tiles;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::frame::{Frame, Rect};
use decode::{Layout, decode, suppress};
#[cfg(feature = "network")]
use model::Model;
#[cfg(not(feature = "network"))]
use no_model::Model;
use tiles::{input, tiles};

/// Maximum size of a model file, in bytes.
const BYTES_MAX: u64 = 512 << 20;

/// An object in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Object {
    /// Box of the object.
    pub place: Rect,
    /// Whether it is a vehicle; `None` if the detector does not classify objects.
    pub vehicle: Option<bool>,
}

impl From<Rect> for Object {
    fn from(place: Rect) -> Object {
        Object { place, vehicle: None }
    }
}

/// The reason why a network cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// This build has no runtime for networks.
    #[error("this build cannot run networks: build it with `cargo build --release --features network`")]
    Absent,
    /// The file cannot be read.
    #[error("{}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file is not a model that can be run.
    #[error("{}: not an ONNX model that can be run", path.display())]
    Model {
        /// Path of the file.
        path: PathBuf,
        /// Error of the runtime.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The model is not a detector of a known form.
    #[error("{}: {rule}", path.display())]
    Form {
        /// Path of the file.
        path: PathBuf,
        /// Rule that the model breaks.
        rule: String,
    },
}

/// A network that is ready to run. Clones share it.
#[derive(Clone, Debug)]
pub struct Network(Arc<Loaded>);

#[derive(Debug)]
struct Loaded {
    model: Model,
    layout: Layout,
}

impl Network {
    /// Loads a network and runs it once, which shows the form of its output.
    ///
    /// The input is a picture in red, green and blue from 0 to 1, `[1, 3, height, width]`. The output has one of the
    /// forms of the YOLO family, with the classes of COCO or with people as the only class:
    /// `[1, boxes, 5 + classes]` (YOLOv5 to v7), `[1, 4 + classes, boxes]` (from YOLOv8 on), or
    /// `[1, 5 + classes, rows, columns]` (FastestDet, whose input is in blue, green and red).
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, is not such a model, or this build runs no networks.
    pub fn open(path: &Path) -> Result<Network, NetworkError> {
        let io = |source| NetworkError::Io { path: path.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(io)?.len();
        if bytes > BYTES_MAX {
            let rule = format!("has {bytes} bytes, and {BYTES_MAX} is the limit");
            return Err(NetworkError::Form { path: path.to_owned(), rule });
        }
        let model = Model::open(path)?;
        let (width, height) = model.size();
        let broken = |source| NetworkError::Model { path: path.to_owned(), source };
        let (shape, _) = model.run(vec![0.0; 3 * width * height]).map_err(broken)?;
        let layout = Layout::of(&shape).map_err(|rule| NetworkError::Form { path: path.to_owned(), rule })?;
        Ok(Network(Arc::new(Loaded { model, layout })))
    }

    /// Loads the network of a query, if it has one.
    ///
    /// # Errors
    /// As [`Network::open`].
    pub fn open_if_any(path: Option<&Path>) -> Result<Option<Network>, NetworkError> {
        path.map(Network::open).transpose()
    }

    /// Returns the people and vehicles in a picture. If the network fails on it there are none, which does not happen
    /// after it ran in [`Network::open`].
    pub fn detect(&self, frame: &Frame) -> Vec<Object> {
        let Loaded { model, layout, .. } = &*self.0;
        let size = model.size();
        let mut found = Vec::new();
        for (number, tile) in (0..).zip(tiles((frame.width(), frame.height()), size)) {
            let Ok((_, values)) = model.run(input(frame, &tile, size, layout.is_blue_first())) else { continue };
            found.extend(decode(layout, &values, size).into_iter().filter_map(|one| one.within(&tile, number)));
        }
        suppress(found)
    }
}

#[cfg(test)]
mod tests;
