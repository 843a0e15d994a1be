//! Files of weights: safetensors with a tensor for each layer's biases and weights, and the ranges of the training as
//! metadata. It opens no file.

use std::collections::BTreeMap;

use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::feature_ranges::FeatureRanges;
use super::network::{Network, PARTS, WEIGHTS};
use serde::{Deserialize, Serialize};

/// Maximum size of a file, in bytes.
pub const BYTES_MAX: usize = 1 << 20;

/// Key of the metadata. There is only one, so that equal models are equal bytes.
const KEY: &str = "tepui";

/// The metadata of a model.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    seen: FeatureRanges,
    about: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    more: BTreeMap<String, String>,
}

/// A model with additional tensors and additional metadata.
pub type ExtendedModel = (Model, Vec<Vec<f32>>, BTreeMap<String, String>);

/// A trained network with a description of its training.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Weights of the network.
    pub network: Network,
    /// Ranges of the features in training.
    pub seen: FeatureRanges,
    /// Description of the training, in words.
    pub about: String,
}

/// The reason why a file is no model of this network.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The file is larger than [`BYTES_MAX`]; has its size.
    #[error("{0} bytes: a model must have {BYTES_MAX} at most")]
    Large(usize),
    /// The file is not in the format safetensors.
    #[error("not in the format safetensors: {0}")]
    Format(String),
    /// The tensor of this name is missing.
    #[error("the tensor '{0}' is missing")]
    Missing(String),
    /// A tensor has a wrong shape or type.
    #[error("the tensor '{name}' has {found}: must be {expected}")]
    Shape {
        /// Name of the tensor.
        name: String,
        /// Type and shape of the tensor.
        found: String,
        /// Expected type and shape.
        expected: String,
    },
    /// The tensor of this name has a number that is not finite.
    #[error("the tensor '{0}' has a number that is not finite")]
    NotFinite(String),
    /// The metadata does not contain the ranges of the training.
    #[error("the metadata '{KEY}' is missing, or is not what a training writes")]
    Metadata,
}

/// Returns the name, range and shape of each tensor of the network.
fn tensors() -> Vec<(String, std::ops::Range<usize>, Vec<usize>)> {
    let mut all = Vec::new();
    for part in PARTS {
        for (at, layer) in part.layers().enumerate() {
            let biases = layer.first..layer.first + layer.outputs;
            let weights = biases.end..biases.end + layer.inputs * layer.outputs;
            all.push((format!("{}.{at}.bias", part.name), biases, vec![layer.outputs]));
            all.push((format!("{}.{at}.weight", part.name), weights, vec![layer.inputs, layer.outputs]));
        }
    }
    all
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Reads a tensor of the type `F32` by its name.
fn read(file: &SafeTensors<'_>, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
    let tensor = file.tensor(name).map_err(|_| ModelError::Missing(name.to_owned()))?;
    if tensor.dtype() != Dtype::F32 || tensor.shape() != shape {
        return Err(ModelError::Shape {
            name: name.to_owned(),
            found: format!("{:?} {:?}", tensor.dtype(), tensor.shape()),
            expected: format!("F32 {shape:?}"),
        });
    }
    let (words, _) = tensor.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    match values.iter().all(|value| value.is_finite()) {
        true => Ok(values),
        false => Err(ModelError::NotFinite(name.to_owned())),
    }
}

impl Model {
    /// Reads a model.
    ///
    /// # Errors
    /// The file is not a model of this network.
    pub fn read(bytes: &[u8]) -> Result<Model, ModelError> {
        Model::read_with(bytes, &[]).map(|(model, _, _)| model)
    }

    /// Reads a model, additional tensors of the file, each as long as the weights, and all metadata.
    ///
    /// # Errors
    /// As [`Model::read`].
    pub fn read_with(bytes: &[u8], more: &[&str]) -> Result<ExtendedModel, ModelError> {
        if bytes.len() > BYTES_MAX {
            return Err(ModelError::Large(bytes.len()));
        }
        let format = |error: safetensors::SafeTensorError| ModelError::Format(error.to_string());
        let file = SafeTensors::deserialize(bytes).map_err(format)?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
        let words = header.metadata().as_ref().and_then(|words| words.get(KEY));
        let header: Header = words.and_then(|text| serde_json::from_str(text).ok()).ok_or(ModelError::Metadata)?;
        // A number that is too large for its type is read as infinity, which could not be written as a number.
        if !header.seen.is_finite() {
            return Err(ModelError::Metadata);
        }
        let mut network = Network { weights: vec![0.0; WEIGHTS] };
        for (name, range, shape) in tensors() {
            network.weights[range].copy_from_slice(&read(&file, &name, &shape)?);
        }
        let more = more.iter().map(|name| read(&file, name, &[WEIGHTS])).collect::<Result<_, _>>()?;
        Ok((Model { network, seen: header.seen, about: header.about }, more, header.more))
    }

    /// Returns the bytes of a file with the model.
    ///
    /// # Errors
    /// The library cannot write them.
    pub fn write(&self) -> Result<Vec<u8>, ModelError> {
        self.write_with(&[], &[])
    }

    /// Returns the bytes of a file with the model, additional tensors, each as long as the weights, and additional
    /// metadata.
    ///
    /// # Errors
    /// The library cannot write them.
    pub fn write_with(&self, more: &[(&str, &[f32])], words: &[(&str, String)]) -> Result<Vec<u8>, ModelError> {
        let format = |error: safetensors::SafeTensorError| ModelError::Format(error.to_string());
        let own =
            tensors().into_iter().map(|(name, range, shape)| (name, bytes_of(&self.network.weights[range]), shape));
        let further = more.iter().map(|(name, values)| ((*name).to_owned(), bytes_of(values), vec![values.len()]));
        let all: Vec<(String, Vec<u8>, Vec<usize>)> = own.chain(further).collect();
        let mut views = Vec::with_capacity(all.len());
        for (name, bytes, shape) in &all {
            views.push((name.clone(), TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(format)?));
        }
        let more = words.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        let header = Header { seen: self.seen.clone(), about: self.about.clone(), more };
        let header = serde_json::to_string(&header).map_err(|_| ModelError::Metadata)?;
        serialize(views, Some(std::iter::once((KEY.to_owned(), header)).collect())).map_err(format)
    }
}
