//! Checks files of learned models: the order of stages of `dag`, the choice of bitrates of `video`.

use dag::learned::{Model, WEIGHTS};
use video::abr::{FEATURES, Weights};

use crate::pieces::Pieces;

/// Checks a model. The first byte selects its form: a file of weights as TOML, a complete file of safetensors, or only
/// its header, which is followed by as many numbers as a network has. An accepted model is the same after writing and
/// reading.
pub fn models(data: &[u8]) {
    let mut pieces = Pieces::new(data);
    match pieces.byte() {
        b't' => weights(pieces.rest()),
        b's' => model(pieces.rest()),
        _ => {
            let header = pieces.rest();
            let mut file = (header.len() as u64).to_le_bytes().to_vec();
            file.extend_from_slice(header);
            file.extend(std::iter::repeat_n(0x3f, WEIGHTS * 4));
            model(&file);
        }
    }
}

fn model(bytes: &[u8]) {
    let Ok(model) = Model::read(bytes) else { return };
    assert!(model.network.weights.len() == WEIGHTS && model.network.weights.iter().all(|weight| weight.is_finite()));
    let written = model.write().expect("a file");
    assert_eq!(Model::read(&written).expect("what was written is read"), model);
}

fn weights(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(weights) = Weights::read(text) else { return };
    let again = Weights::read(&weights.write(&[])).expect("what was written is read");
    for ((feature, one), two) in FEATURES.iter().zip(weights.0).zip(again.0) {
        // Weights are written with three digits.
        assert!((one - two).abs() <= 1e-3 + one.abs() * 1e-12, "{}: {one} and {two}", feature.name);
    }
}
