//! Manifests of schema 1 (Docker's image manifest version 2, schema 1), which old registries have. They list layers and
//! their history, the uppermost one first, and have no configuration of their own.

use serde::Deserialize;

use super::layout::Manifest;
use super::{ConfigurationPart, ImageError};

/// A layer of a schema 1 manifest: an entry of `fsLayers`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Layer {
    blob_sum: String,
}

/// An entry of `history`: the step that made the layer at the same position.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct History {
    /// JSON text within the JSON.
    v1_compatibility: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    config: Option<ConfigurationPart>,
    /// Whether the step has changed no files.
    throwaway: bool,
}

/// Returns the configuration, and the digests of the layers, the lowest one first; each once.
pub(super) fn read(manifest: &Manifest) -> Result<(Option<ConfigurationPart>, Vec<String>), ImageError> {
    let (layers, history) = (&manifest.fs_layers, &manifest.history);
    if layers.len() != history.len() {
        return Err(ImageError(format!(
            "The manifest has {} layers, and a history of {}",
            layers.len(),
            history.len()
        )));
    }
    let (mut config, mut blobs) = (None, Vec::new());
    for (number, (layer, step)) in layers.iter().zip(history).enumerate() {
        let step: Step = serde_json::from_str(&step.v1_compatibility)
            .map_err(|error| ImageError::at("The history in the image's manifest cannot be read", error))?;
        if number == 0 {
            config = step.config;
        }
        // A later occurrence, further down, is hidden by the earlier one.
        if !step.throwaway && !blobs.contains(&layer.blob_sum) {
            blobs.push(layer.blob_sum.clone());
        }
    }
    blobs.reverse();
    Ok((config, blobs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_and_their_history() {
        let text = r#"{"schemaVersion": 1, "name": "app", "tag": "1", "architecture": "amd64",
            "fsLayers": [{"blobSum": "none"}, {"blobSum": "upper"}, {"blobSum": "lower"}, {"blobSum": "upper"}],
            "history": [{"v1Compatibility": "{\"config\": {\"Env\": [\"A=b\"]}, \"throwaway\": true}"},
                {"v1Compatibility": "{\"config\": {}}"}, {"v1Compatibility": "{}"}, {"v1Compatibility": "{}"}],
            "signatures": []}"#;
        let (config, blobs) = read(&Manifest::read(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(config.unwrap().env.unwrap(), ["A=b"]);
        assert_eq!(blobs, ["lower", "upper"]);
        for text in [
            r#"{"fsLayers": [{"blobSum": "x"}], "history": []}"#,
            r#"{"fsLayers": [{"blobSum": "x"}], "history": [{"v1Compatibility": "nonsense"}]}"#,
        ] {
            assert!(read(&Manifest::read(text.as_bytes()).unwrap()).is_err(), "{text}");
        }
    }
}
