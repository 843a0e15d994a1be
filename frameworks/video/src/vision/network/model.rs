//! Runs a model with tract, on one core.

use std::path::Path;
use std::sync::Arc;

use tract_onnx::prelude::*;

use super::NetworkError;

/// Width and height of the input if the model leaves them open.
const SIDE: usize = 640;
/// Largest width or height of an input.
const SIDE_MAX: usize = 2048;

/// A loaded model.
pub(super) struct Model {
    plan: Arc<TypedRunnableModel>,
    size: (usize, usize),
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Model {
    /// Loads a model and prepares it for inputs of its size.
    pub(super) fn open(path: &Path) -> Result<Model, NetworkError> {
        let broken = |error: TractError| NetworkError::Model { path: path.to_owned(), source: error.into() };
        let model = tract_onnx::onnx().model_for_path(path).map_err(broken)?;
        let shape = model.input_fact(0).map_err(broken)?.shape.as_concrete_finite().map_err(broken)?;
        let size = match shape.as_deref() {
            Some([1, 3, height, width]) => (*width, *height),
            Some(other) => {
                let rule = format!("its input has the form {other:?}, not [1, 3, height, width]");
                return Err(NetworkError::Form { path: path.to_owned(), rule });
            }
            None => (SIDE, SIDE),
        };
        if size.0.max(size.1) > SIDE_MAX || size.0.min(size.1) == 0 {
            let rule = format!("its input has {} x {} pixels; 1 to {SIDE_MAX} are possible", size.0, size.1);
            return Err(NetworkError::Form { path: path.to_owned(), rule });
        }
        let prepared = model
            .with_input_fact(0, f32::fact([1, 3, size.1, size.0]).into())
            .and_then(|model| model.into_optimized())
            .and_then(|model| model.into_runnable());
        Ok(Model { plan: prepared.map_err(broken)?, size })
    }

    /// Returns the width and height of the input.
    pub(super) fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Runs the model. Returns the shape of its first output and the values.
    pub(super) fn run(
        &self,
        input: Vec<f32>,
    ) -> Result<(Vec<usize>, Vec<f32>), Box<dyn std::error::Error + Send + Sync>> {
        let (width, height) = self.size;
        let input = Tensor::from_shape(&[1, 3, height, width], &input)?;
        let outputs = self.plan.run(tvec!(input.into()))?;
        let output = outputs.first().ok_or("the model has no output")?;
        let output = output.cast_to::<f32>()?;
        Ok((output.shape().to_vec(), output.to_plain_array_view::<f32>()?.iter().copied().collect()))
    }
}
