//! Perceptrons of a few small layers over a flat vector of weights: evaluation and gradients. They know nothing of
//! jobs.

/// Slope of a layer's activation for negative sums (leaky ReLU).
const LEAK: f32 = 0.2;

/// Maximum number of layers of a perceptron.
const LAYERS: usize = 4;

/// A perceptron: the position of its weights, and the widths of its layers. A layer has its biases first, then for each
/// input the weights to all outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mlp {
    /// Name in a file of weights.
    pub name: &'static str,
    first: usize,
    sizes: [usize; LAYERS + 1],
    layers: usize,
    /// Whether the last layer is linear, because its output is a score.
    is_score: bool,
}

/// A layer in the vector of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Index of the layer's first bias.
    pub first: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Number of outputs.
    pub outputs: usize,
}

impl Mlp {
    /// Creates a perceptron with hidden layers of 16 and 8 units, and 8 outputs.
    pub const fn embedding(name: &'static str, first: usize, inputs: usize) -> Mlp {
        Mlp { name, first, sizes: [inputs, 16, 8, 8, 0], layers: 3, is_score: false }
    }

    /// Creates a perceptron with hidden layers of 32, 16 and 8 units, and a score as its output.
    pub const fn score(name: &'static str, first: usize, inputs: usize) -> Mlp {
        Mlp { name, first, sizes: [inputs, 32, 16, 8, 1], layers: 4, is_score: true }
    }

    /// Returns the index after the last weight.
    pub const fn end(&self) -> usize {
        let (mut at, mut layer) = (self.first, 0);
        while layer < self.layers {
            at += (self.sizes[layer] + 1) * self.sizes[layer + 1];
            layer += 1;
        }
        at
    }

    /// Returns the length of the trace of an evaluation: the outputs of all layers, the result last.
    pub const fn trace(&self) -> usize {
        let (mut all, mut layer) = (0, 1);
        while layer <= self.layers {
            all += self.sizes[layer];
            layer += 1;
        }
        all
    }

    /// Returns the number of inputs.
    pub const fn inputs(&self) -> usize {
        self.sizes[0]
    }

    /// Returns the layers of the perceptron.
    pub fn layers(&self) -> impl Iterator<Item = Layer> + use<> {
        let Mlp { mut first, sizes, layers, .. } = *self;
        (0..layers).map(move |at| {
            let layer = Layer { first, inputs: sizes[at], outputs: sizes[at + 1] };
            first += (layer.inputs + 1) * layer.outputs;
            layer
        })
    }

    /// Evaluates the perceptron. `trace` has the length [`Mlp::trace`] and ends with the outputs.
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

    /// Writes the weights of all layers to the same positions of `to`, ordered by outputs instead of inputs, as
    /// [`Mlp::back`] reads them.
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

    /// Adds the gradients of an evaluation: of the weights to `gradient`, of the inputs to `to_inputs`. `of_outputs` is
    /// the gradient of the outputs.
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

/// Evaluates a layer. The width is known at compile time, which keeps all sums in registers.
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

/// Adds the gradients of a layer's weights; `of_outputs` becomes the gradient of the sums before the activation.
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

/// Adds the gradients of a layer's inputs. The width is known at compile time, which keeps them in registers.
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
            // Some activations have a kink between the two points of a difference.
            assert!(differ * 50 <= all, "{}: {differ} of {all} slopes differ", mlp.name);
        }
    }

    /// Returns how many slopes differ, and the number of slopes.
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
