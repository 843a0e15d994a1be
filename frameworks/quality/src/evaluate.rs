//! Evaluates predictions against known labels: a confusion matrix with its measures, or the errors of predicted
//! numbers.
//!
//! It receives pairs of predictions and labels, and reads no files and no models.

use serde::Serialize;

/// Maximum number of classes of a confusion matrix, which has a number for each pair of classes.
const CLASSES_MAX: usize = 1_000;

/// An error that prevents an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// The model was trained without labels.
    #[error("{0} learns no labels: its predictions cannot be evaluated")]
    NoLabels(String),
    /// A confusion matrix would be too large.
    #[error("there are {0} classes; at most {CLASSES_MAX} can be evaluated")]
    TooManyClasses(usize),
}

/// The quality of a model's predictions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Evaluation {
    /// Predicted classes.
    Classes(Confusion),
    /// Predicted numbers.
    Numbers(Errors),
}

/// A comparison of predicted classes with those of the labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Confusion {
    /// Number of rows that were evaluated.
    pub rows: u64,
    /// Share of rows whose class was predicted.
    pub accuracy: f64,
    /// Scores of each class, in the model's order.
    pub classes: Vec<ClassScore>,
    /// Confusion matrix, in the model's order: for each class of the labels, the number of its rows that were predicted
    /// to be of each class.
    pub confusion: Vec<Vec<u64>>,
}

/// The quality of the predictions of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassScore {
    /// Name of the class.
    pub class: String,
    /// Number of rows with this label.
    pub rows: u64,
    /// Share of the rows predicted to be of this class that are of it; `None` if no row was predicted so.
    pub precision: Option<f64>,
    /// Share of the class's rows that were predicted to be of it; `None` if it has no rows.
    pub recall: Option<f64>,
}

/// A comparison of predicted numbers with the labels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// Number of rows that were evaluated.
    pub rows: u64,
    /// Root of the mean of the squared differences.
    pub root_mean_squared_error: f64,
    /// Mean of the absolute differences.
    pub mean_absolute_error: f64,
    /// Share of the labels' variance that the predictions explain; `None` if all labels are equal.
    pub r_squared: Option<f64>,
}

impl Evaluation {
    /// Evaluates pairs of a predicted class and the label's class, each an index into `classes`.
    ///
    /// # Errors
    /// There are too many classes.
    pub fn of_classes(
        classes: &[String],
        pairs: impl Iterator<Item = (usize, usize)>,
    ) -> Result<Evaluation, EvaluateError> {
        let count = classes.len();
        if count > CLASSES_MAX {
            return Err(EvaluateError::TooManyClasses(count));
        }
        let mut confusion = vec![vec![0_u64; count]; count];
        for (predicted, label) in pairs {
            if let Some(cell) = confusion.get_mut(label).and_then(|of_label| of_label.get_mut(predicted)) {
                *cell += 1;
            }
        }
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let score = |(class, name): (usize, &String)| {
            let rows = confusion[class].iter().sum();
            let predicted = confusion.iter().map(|of_label| of_label[class]).sum();
            let right = confusion[class][class];
            ClassScore { class: name.clone(), rows, precision: share(right, predicted), recall: share(right, rows) }
        };
        let scores: Vec<ClassScore> = classes.iter().enumerate().map(score).collect();
        let rows = scores.iter().map(|s| s.rows).sum();
        let right = (0..count).map(|class| confusion[class][class]).sum();
        let accuracy = share(right, rows).unwrap_or(0.0);
        Ok(Evaluation::Classes(Confusion { rows, accuracy, classes: scores, confusion }))
    }

    /// Evaluates pairs of a predicted number and the label.
    pub fn of_numbers(pairs: impl Iterator<Item = (f64, f64)>) -> Evaluation {
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let rows = pairs.len().max(1) as f64;
        let mean = pairs.iter().map(|(_, label)| label).sum::<f64>() / rows;
        let squares: f64 = pairs.iter().map(|(predicted, label)| (predicted - label).powi(2)).sum();
        let variance: f64 = pairs.iter().map(|(_, label)| (label - mean).powi(2)).sum();
        Evaluation::Numbers(Errors {
            rows: pairs.len() as u64,
            root_mean_squared_error: (squares / rows).sqrt(),
            mean_absolute_error: pairs.iter().map(|(predicted, label)| (predicted - label).abs()).sum::<f64>() / rows,
            r_squared: (variance > 0.0).then(|| 1.0 - squares / variance),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_and_recall_are_those_of_a_table_done_by_hand() {
        let classes = ["a", "b", "c"].map(str::to_owned);
        // Pairs of predicted and label: of class a 2 of 3 are right, of b 1 of 1, of c none of none; one a was
        // predicted to be b.
        let pairs = [(0, 0), (0, 0), (1, 0), (1, 1)];
        let Ok(Evaluation::Classes(found)) = Evaluation::of_classes(&classes, pairs.into_iter()) else { panic!() };
        assert_eq!((found.rows, found.accuracy), (4, 0.75));
        assert_eq!(found.confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]]);
        let measures: Vec<_> = found.classes.iter().map(|c| (c.rows, c.precision, c.recall)).collect();
        assert_eq!(measures, [(3, Some(1.0), Some(2.0 / 3.0)), (1, Some(0.5), Some(1.0)), (0, None, None)]);
        let many: Vec<String> = (0..1_001).map(|c| c.to_string()).collect();
        assert_eq!(Evaluation::of_classes(&many, std::iter::empty()), Err(EvaluateError::TooManyClasses(1_001)));
    }

    #[test]
    fn errors_of_numbers_are_those_of_the_definitions() {
        let Evaluation::Numbers(found) = Evaluation::of_numbers([(1.0, 1.0), (4.0, 2.0), (3.0, 3.0)].into_iter())
        else {
            panic!()
        };
        assert_eq!((found.rows, found.mean_absolute_error), (3, 2.0 / 3.0));
        assert!((found.root_mean_squared_error - (4.0_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert_eq!(found.r_squared, Some(-1.0));
        let Evaluation::Numbers(same) = Evaluation::of_numbers([(1.0, 2.0), (2.0, 2.0)].into_iter()) else { panic!() };
        assert_eq!(same.r_squared, None);
    }
}
