//! Perceptrons of a few small layers over a flat vector of weights: forward, and the gradients of it. They know
//! nothing of jobs.

/// What a negative sum counts after a layer.
const LEAK: f32 = 0.2;

/// Layers of a perceptron at most.
const LAYERS: usize = 4;

/// A perceptron: where its weights are, and how wide its layers are. A layer has its biases first, then for each input
/// the weights to all outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mlp {
    /// Its name in a file of weights.
    pub name: &'static str,
    first: usize,
    sizes: [usize; LAYERS + 1],
    layers: usize,
    /// Whether the last layer has no bend: it is a score.
    is_score: bool,
}

/// A layer in the vector of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The place of its first bias.
    pub first: usize,
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
}

impl Mlp {
    /// A perceptron with hidden layers of 16 and 8, and 8 outputs.
    pub const fn embedding(name: &'static str, first: usize, inputs: usize) -> Mlp {
        Mlp { name, first, sizes: [inputs, 16, 8, 8, 0], layers: 3, is_score: false }
    }

    /// A perceptron with hidden layers of 32, 16 and 8, and a score.
    pub const fn score(name: &'static str, first: usize, inputs: usize) -> Mlp {
        Mlp { name, first, sizes: [inputs, 32, 16, 8, 1], layers: 4, is_score: true }
    }

    /// The first place behind its weights.
    pub const fn end(&self) -> usize {
        let (mut at, mut layer) = (self.first, 0);
        while layer < self.layers {
            at += (self.sizes[layer] + 1) * self.sizes[layer + 1];
            layer += 1;
        }
        at
    }

    /// Numbers that an evaluation leaves behind: the outputs of all layers, the result last.
    pub const fn trace(&self) -> usize {
        let (mut all, mut layer) = (0, 1);
        while layer <= self.layers {
            all += self.sizes[layer];
            layer += 1;
        }
        all
    }

    /// Inputs.
    pub const fn inputs(&self) -> usize {
        self.sizes[0]
    }

    /// Its layers.
    pub fn layers(&self) -> impl Iterator<Item = Layer> + use<> {
        let Mlp { mut first, sizes, layers, .. } = *self;
        (0..layers).map(move |at| {
            let layer = Layer { first, inputs: sizes[at], outputs: sizes[at + 1] };
            first += (layer.inputs + 1) * layer.outputs;
            layer
        })
    }

    /// Evaluates it. `trace` has [`Mlp::trace`] places and ends with the outputs.
    pub fn run(&self, weights: &[f32], inputs: &[f32], trace: &mut [f32]) {
        let (mut done, mut at) = (0, 0);
        for layer in self.layers() {
            at += 1;
            let bends = !(self.is_score && at == self.layers);
            let (before, after) = trace.split_at_mut(done);
            let from = if at == 1 { inputs } else { &before[done - layer.inputs..] };
            let part = &weights[layer.first..layer.first + (layer.inputs + 1) * layer.outputs];
            let to = &mut after[..layer.outputs];
            match layer.outputs {
                1 => forward::<1>(part, from, to, bends),
                8 => forward::<8>(part, from, to, bends),
                16 => forward::<16>(part, from, to, bends),
                _ => forward::<32>(part, from, to, bends),
            }
            done += layer.outputs;
        }
    }

    /// The weights of all layers by outputs instead of inputs, at the same places of `to`: what [`Mlp::back`] reads.
    pub fn transpose(&self, weights: &[f32], to: &mut [f32]) {
        for Layer { first, inputs, outputs } in self.layers() {
            let from = first + outputs;
            for input in 0..inputs {
                for output in 0..outputs {
                    to[from + output * inputs + input] = weights[from + input * outputs + output];
                }
            }
        }
    }

    /// Adds the gradients of an evaluation: of the weights to `gradient`, of the inputs to `to_inputs`. `of_outputs`
    /// has the gradient of the outputs.
    pub fn back(
        &self,
        transposed: &[f32],
        (inputs, trace): (&[f32], &[f32]),
        of_outputs: &[f32],
        gradient: &mut [f32],
        to_inputs: &mut [f32],
    ) {
        let mut layers = [Layer { first: 0, inputs: 0, outputs: 0 }; LAYERS];
        for (place, layer) in layers.iter_mut().zip(self.layers()) {
            *place = layer;
        }
        let mut of = [0.0; 32];
        of[..of_outputs.len()].copy_from_slice(of_outputs);
        let mut done = self.trace();
        for at in (0..self.layers).rev() {
            let layer = layers[at];
            let bends = !(self.is_score && at + 1 == self.layers);
            let outputs = &trace[done - layer.outputs..done];
            done -= layer.outputs;
            let range = layer.first..layer.first + (layer.inputs + 1) * layer.outputs;
            let part = &transposed[range.start + layer.outputs..range.end];
            let grad = &mut gradient[range];
            let mut before = [0.0; 32];
            let (from, to) = match at {
                0 => (inputs, &mut *to_inputs),
                _ => (&trace[done - layer.inputs..done], &mut before[..layer.inputs]),
            };
            match layer.outputs {
                1 => backward::<1>((from, outputs), &mut of, grad, bends),
                8 => backward::<8>((from, outputs), &mut of, grad, bends),
                16 => backward::<16>((from, outputs), &mut of, grad, bends),
                _ => backward::<32>((from, outputs), &mut of, grad, bends),
            }
            match layer.inputs {
                6 => towards::<6>(part, &of, to),
                8 => towards::<8>(part, &of, to),
                16 => towards::<16>(part, &of, to),
                22 => towards::<22>(part, &of, to),
                32 => towards::<32>(part, &of, to),
                35 => towards::<35>(part, &of, to),
                _ => towards_any(part, &of, to),
            }
            of = before;
        }
    }
}

/// A width that the compiler knows keeps all sums in registers.
fn forward<const OUT: usize>(weights: &[f32], inputs: &[f32], outputs: &mut [f32], bends: bool) {
    let (rows, _) = weights.as_chunks::<OUT>();
    let mut sums = rows[0];
    for (input, row) in inputs.iter().zip(&rows[1..]) {
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum += input * weight;
        }
    }
    if bends {
        for sum in &mut sums {
            *sum = if *sum > 0.0 { *sum } else { LEAK * *sum };
        }
    }
    outputs.copy_from_slice(&sums);
}

/// The gradients of a layer's weights; `of_outputs` becomes that of the sums before the bend.
fn backward<const OUT: usize>(
    (inputs, outputs): (&[f32], &[f32]),
    of_outputs: &mut [f32; 32],
    gradient: &mut [f32],
    bends: bool,
) {
    let mut of = [0.0; OUT];
    for ((of, of_output), output) in of.iter_mut().zip(of_outputs.iter()).zip(outputs) {
        *of = if bends && *output <= 0.0 { LEAK * of_output } else { *of_output };
    }
    let (sums, _) = gradient.as_chunks_mut::<OUT>();
    let Some((biases, sums)) = sums.split_first_mut() else { return };
    for (sum, of) in biases.iter_mut().zip(&of) {
        *sum += of;
    }
    for (input, sums) in inputs.iter().zip(sums) {
        for (sum, of) in sums.iter_mut().zip(&of) {
            *sum += input * of;
        }
    }
    of_outputs[..OUT].copy_from_slice(&of);
}

/// The gradients of a layer's inputs. A width that the compiler knows keeps them in registers.
fn towards<const IN: usize>(transposed: &[f32], of_sums: &[f32], to_inputs: &mut [f32]) {
    let (rows, _) = transposed.as_chunks::<IN>();
    let mut sums = [0.0; IN];
    for (row, of) in rows.iter().zip(of_sums) {
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum += of * weight;
        }
    }
    for (to, sum) in to_inputs.iter_mut().zip(sums) {
        *to += sum;
    }
}

fn towards_any(transposed: &[f32], of_sums: &[f32], to_inputs: &mut [f32]) {
    for (row, of) in transposed.chunks(to_inputs.len()).zip(of_sums) {
        for (to, weight) in to_inputs.iter_mut().zip(row) {
            *to += of * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::random::Random;

    #[test]
    fn gradients_are_those_of_finite_differences() {
        for mlp in [Mlp::embedding("a", 3, 6), Mlp::embedding("c", 0, 8), Mlp::score("b", 0, 7)] {
            let (mut differ, mut all) = (0, 0);
            for seed in 1..=5 {
                let (more, of) = compared(mlp, seed);
                differ += more;
                all += of;
            }
            // Between the two points of a difference a unit may bend.
            assert!(differ * 50 <= all, "{}: {differ} of {all} slopes differ", mlp.name);
        }
    }

    /// How many slopes differ, of how many.
    fn compared(mlp: Mlp, seed: u64) -> (usize, usize) {
        let mut random = Random::new(seed, mlp.name);
        let mut weights: Vec<f32> = (0..mlp.end()).map(|_| random.normal() as f32 * 0.5).collect();
        let mut inputs: Vec<f32> = (0..mlp.inputs()).map(|_| random.normal() as f32).collect();
        let outputs = if mlp.is_score { 1 } else { 8 };
        let factors: Vec<f32> = (0..outputs).map(|_| random.normal() as f32).collect();
        let value = |weights: &[f32], inputs: &[f32]| {
            let mut trace = vec![0.0; mlp.trace()];
            mlp.run(weights, inputs, &mut trace);
            let last = &trace[mlp.trace() - outputs..];
            last.iter().zip(&factors).map(|(a, b)| f64::from(a * b)).sum::<f64>()
        };
        let (mut trace, mut transposed) = (vec![0.0; mlp.trace()], vec![0.0; weights.len()]);
        mlp.run(&weights, &inputs, &mut trace);
        mlp.transpose(&weights, &mut transposed);
        let (mut of_weights, mut of_inputs) = (vec![0.0; weights.len()], vec![0.0; inputs.len()]);
        mlp.back(&transposed, (&inputs, &trace), &factors, &mut of_weights, &mut of_inputs);
        let step = 1e-3;
        let differs = |a: f64, b: f32| usize::from((a - f64::from(b)).abs() > 2e-2 * (1.0 + a.abs()));
        let (mut differ, mut all) = (0, 0);
        for at in mlp.first..weights.len() {
            let kept = weights[at];
            let mut moved = |by: f32| {
                weights[at] = kept + by;
                value(&weights, &inputs)
            };
            let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            moved(0.0);
            (differ, all) = (differ + differs(slope, of_weights[at]), all + 1);
        }
        for at in 0..inputs.len() {
            let kept = inputs[at];
            let mut moved = |by: f32| {
                inputs[at] = kept + by;
                value(&weights, &inputs)
            };
            let slope = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            moved(0.0);
            (differ, all) = (differ + differs(slope, of_inputs[at]), all + 1);
        }
        (differ, all)
    }
}
