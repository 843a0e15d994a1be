//! Gradient descent with an adaptive step: a little longer after each success, half as long after a failure.

use serde::{Deserialize, Serialize};

use super::error::LearnError;

const GROWTH: f64 = 1.1;
/// Maximum number of halvings in a row; after that the step is too small for a floating-point number.
const HALVINGS_MAX: u32 = 60;

/// The state of a gradient descent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Descent {
    step: f64,
    /// Point at which loss and gradient are computed next.
    point: Vec<f64>,
    /// Best point so far, with its loss and gradient.
    best: Option<Best>,
    halvings: u32,
    iteration: u64,
    /// Point to which [`back`](Descent::back) returns.
    mark: Option<Vec<f64>>,
    /// Best point, while its loss is measured anew.
    settled: Option<Vec<f64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Best {
    point: Vec<f64>,
    gradient: Vec<f64>,
    loss: f64,
    accuracy: Option<f64>,
}

/// The result of an iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) iteration: u64,
    /// Lowest loss so far.
    pub(crate) loss: f64,
    /// Accuracy at that loss.
    pub(crate) accuracy: Option<f64>,
    /// Whether the point was not better, so that the step is tried again, half as long.
    pub(crate) retried: bool,
}

impl Descent {
    pub(crate) fn new(point: Vec<f64>, step: f64) -> Descent {
        Descent { step, point, best: None, halvings: 0, iteration: 0, mark: None, settled: None }
    }

    /// Returns the point at which loss and gradient are needed next.
    pub(crate) fn point(&self) -> &[f64] {
        &self.point
    }

    /// Returns the point with the lowest loss so far.
    pub(crate) fn best(&self) -> Option<&[f64]> {
        self.best.as_ref().map(|b| &b.point).or(self.settled.as_ref()).map(Vec::as_slice)
    }

    /// Moves to the best point so far and discards its loss and gradient. They are needed again because the caller
    /// measures them in another way.
    pub(crate) fn settle(&mut self) {
        if let Some(best) = self.best.take() {
            self.point.clone_from(&best.point);
            (self.settled, self.halvings) = (Some(best.point), 0);
        }
    }

    /// Marks the best point so far, so that [`back`](Descent::back) can return to it.
    pub(crate) fn mark(&mut self) {
        self.mark = self.best.as_ref().map(|best| best.point.clone());
    }

    /// Moves to the marked point, where loss and gradient are needed again, and halves the step. Returns `false`
    /// without a marked point.
    pub(crate) fn back(&mut self) -> bool {
        let Some(mark) = &self.mark else { return false };
        (self.point, self.settled, self.best, self.halvings) = (mark.clone(), Some(mark.clone()), None, 0);
        self.step /= 2.0;
        true
    }

    /// Makes a step from the loss and the gradient at [`point`](Descent::point).
    pub(crate) fn advance(
        &mut self,
        loss: f64,
        gradient: Vec<f64>,
        accuracy: Option<f64>,
    ) -> Result<Outcome, LearnError> {
        let iteration = self.iteration;
        self.iteration += 1;
        let worse = self.best.as_ref().is_some_and(|b| loss > b.loss);
        let mut retried = false;
        let number = loss.is_finite() && gradient.iter().all(|g| g.is_finite());
        match (&mut self.best, number && !worse) {
            (_, true) => {
                if self.halvings == 0 && self.best.is_some() {
                    self.step *= GROWTH;
                }
                self.halvings = 0;
                self.best = Some(Best { point: self.point.clone(), gradient, loss, accuracy });
            }
            (Some(_), false) if self.halvings < HALVINGS_MAX => {
                self.step /= 2.0;
                self.halvings += 1;
                retried = true;
            }
            // No point is lower than this one within floating-point precision.
            (Some(_), false) if number => {}
            _ => return Err(LearnError::NotANumber { iteration, halvings: self.halvings }),
        }
        // There is a best point: the first success has set it, and without one the function has returned.
        let Some(best) = &self.best else { return Err(LearnError::NotANumber { iteration, halvings: 0 }) };
        self.point = best.point.iter().zip(&best.gradient).map(|(p, g)| p - self.step * g).collect();
        Ok(Outcome { iteration, loss: best.loss, accuracy: best.accuracy, retried })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Minimizes (x - 3)^2 with a first step that is far too long.
    #[test]
    fn a_bowl_is_descended_without_going_up() {
        let mut descent = Descent::new(vec![100.0], 1000.0);
        let mut last = f64::INFINITY;
        for _ in 0..200 {
            let x = descent.point()[0];
            let outcome = descent.advance((x - 3.0).powi(2), vec![2.0 * (x - 3.0)], None).unwrap();
            assert!(outcome.loss <= last);
            last = outcome.loss;
        }
        assert!((descent.best().unwrap()[0] - 3.0).abs() < 1e-6);
    }

    #[test]
    fn a_settled_descent_is_at_its_best_and_one_that_goes_back_at_its_mark() {
        let mut descent = Descent::new(vec![4.0], 0.25);
        let at = |x: f64| ((x - 3.0).powi(2), vec![2.0 * (x - 3.0)]);
        let go = |descent: &mut Descent| {
            let (loss, gradient) = at(descent.point()[0]);
            descent.advance(loss, gradient, None).unwrap()
        };
        go(&mut descent);
        descent.mark();
        go(&mut descent);
        descent.settle();
        assert_eq!((descent.point(), descent.best()), (&[3.5][..], Some(&[3.5][..])));
        // The new measure may be worse than the last one of the old kind.
        assert!(!descent.advance(100.0, vec![1.0], None).unwrap().retried);
        let step = descent.step;
        assert!(descent.back() && descent.step == step / 2.0);
        assert_eq!((descent.point(), descent.best()), (&[4.0][..], Some(&[4.0][..])));
    }

    #[test]
    fn a_loss_that_is_not_a_number_halves_the_step_and_then_fails() {
        let mut descent = Descent::new(vec![1.0], 1.0);
        descent.advance(1.0, vec![1.0], None).unwrap();
        let outcome = descent.advance(f64::NAN, vec![1.0], None).unwrap();
        assert_eq!((outcome.loss, descent.point()), (1.0, &[0.5][..]));
        let failed = (0..100).find_map(|_| descent.advance(f64::INFINITY, vec![1.0], None).err());
        assert!(matches!(failed, Some(LearnError::NotANumber { halvings: HALVINGS_MAX, .. })), "{failed:?}");
        let first = Descent::new(vec![1.0], 1.0).advance(f64::NAN, vec![0.0], None);
        assert!(matches!(first, Err(LearnError::NotANumber { iteration: 0, .. })));
    }
}
