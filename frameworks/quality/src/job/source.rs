//! Sources of a job's data: a file, or a generator with a seed.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Validation;
use crate::input::{self, Format, Input, InputError, Label, LabelsToRead, Reading, Schema};
use crate::learn::{Algorithm, Data, Generator, LearnError, Shape, generate, generate_rows, range};

/// A source of data. In a job file it names either a `file` or a `generator`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub enum Source {
    /// No data: a user's program reads its data itself.
    #[default]
    None,
    /// A file that the scheduler and all workers can read under this name.
    File {
        /// Path of the file.
        path: String,
        /// Format of the file. If not given, the file's name decides, as in [`Format::of`].
        format: Format,
        /// Column that is the label, in CSV.
        label: Label,
        /// Names of the columns with categories, in CSV.
        categorical: Vec<String>,
    },
    /// Data that is generated from a seed.
    Generated {
        /// Kind of the data.
        generator: Generator,
        /// Numbers of rows, columns and classes.
        shape: Shape,
        /// Amount of randomness in the data.
        noise: f64,
        /// Seed of the generator.
        seed: u64,
    },
}

/// The fields of a source as a job file has them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    categorical: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generator: Option<Generator>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    columns: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// Maximum number of numbers that a generator makes.
const CELLS_MAX: usize = 500_000_000;

impl TryFrom<Fields> for Source {
    type Error = String;

    fn try_from(f: Fields) -> Result<Source, String> {
        match (f.file, f.generator) {
            (Some(path), None) => {
                let made =
                    [("rows", f.rows.is_some()), ("columns", f.columns.is_some()), ("classes", f.classes.is_some())];
                let made = made.into_iter().chain([("noise", f.noise.is_some()), ("seed", f.seed.is_some())]);
                if let Some((name, _)) = made.into_iter().find(|(_, given)| *given) {
                    return Err(format!("`{name}` is for generators, not for files"));
                }
                let format = f.format.unwrap_or_else(|| Format::of(&path));
                Ok(Source::File { path, format, label: f.label.unwrap_or_default(), categorical: f.categorical })
            }
            (None, Some(generator)) => {
                if f.format.is_some() || f.label.is_some() || !f.categorical.is_empty() {
                    return Err("`format`, `label` and `categorical` are for files".to_owned());
                }
                let classes = f.classes.unwrap_or(match generator {
                    Generator::Linear | Generator::Bumps => 0,
                    Generator::Halves => 2,
                    Generator::Rings => 3,
                    Generator::Clouds => 8,
                    Generator::Documents => 10,
                });
                let (rows, columns) = (f.rows.unwrap_or(1_000), f.columns.unwrap_or(10));
                let shape = Shape { rows, columns, classes };
                let (noise, seed) = (f.noise.unwrap_or(0.1), f.seed.unwrap_or(0));
                Ok(Source::Generated { generator, shape, noise, seed })
            }
            (Some(_), Some(_)) => Err("names both a `file` and a `generator`: name one of them".to_owned()),
            (None, None) => Err("names neither a `file` nor a `generator`".to_owned()),
        }
    }
}

impl From<Source> for Fields {
    fn from(source: Source) -> Fields {
        match source {
            Source::None => Fields::default(),
            Source::File { path, format, label, categorical } => {
                Fields { file: Some(path), format: Some(format), label: Some(label), categorical, ..Fields::default() }
            }
            Source::Generated { generator, shape, noise, seed } => Fields {
                generator: Some(generator),
                rows: Some(shape.rows),
                columns: Some(shape.columns),
                classes: Some(shape.classes),
                noise: Some(noise),
                seed: Some(seed),
                ..Fields::default()
            },
        }
    }
}

/// An error for data that is not available.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A line of the file breaks a rule.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The data does not fit the algorithm.
    #[error(transparent)]
    Learn(#[from] LearnError),
}

/// A source that has been examined: its shape is known, and each shard can be read or generated.
#[derive(Debug)]
pub struct Prepared {
    source: Source,
    shape: Shape,
    classes: Vec<String>,
    schema: Schema,
    /// Rows of the whole file; `None` for a generator.
    data: Option<Arc<Input>>,
    held: HeldOut,
}

/// The rows that are held out of training.
#[derive(Debug)]
enum HeldOut {
    None,
    /// Rows of a file: the indices of those to learn from, and of those held out.
    Rows {
        learnt: Vec<usize>,
        held: Vec<usize>,
    },
    /// Number of generated rows at the end that are held out; generated rows have no order.
    End(usize),
    /// Rows of another file.
    File(Input),
}

impl Source {
    /// Returns whether there is no data.
    pub fn is_none(&self) -> bool {
        *self == Source::None
    }

    /// Checks whether data of this source fits an algorithm, as far as that can be known without reading a file.
    ///
    /// # Errors
    /// Returns what does not fit, and the rule.
    pub fn check(&self, algorithm: &Algorithm) -> Result<(), LearnError> {
        let Source::Generated { generator, shape, noise, seed } = self else { return Ok(()) };
        let invalid = |item: &str, rule: &str| LearnError::Invalid { item: item.to_owned(), rule: rule.to_owned() };
        if shape.rows.saturating_mul(shape.columns) > CELLS_MAX {
            return Err(invalid("rows", "times columns is more than 500000000"));
        }
        let counts = *generator == Generator::Documents;
        if counts != matches!(algorithm, Algorithm::Topics(_)) {
            return Err(invalid("generator", "the generator documents is for lda, and lda needs it"));
        }
        let numbers = matches!(generator, Generator::Linear) || *generator == Generator::Bumps && shape.classes == 0;
        if algorithm.classifies() && numbers {
            return Err(invalid("generator", "makes numbers as labels, and the algorithm needs classes"));
        }
        // One row shows whether the generator accepts the shape.
        let one = Shape { rows: 1, ..*shape };
        generate(*generator, one, *noise, *seed, 0, 1)?;
        algorithm.check_shape(shape)
    }

    /// Examines the data. `text` is the file's content; generators have none.
    ///
    /// # Errors
    /// A line of the file breaks a rule, or the data does not fit the algorithm.
    pub fn prepare(&self, algorithm: &Algorithm, text: Option<&str>) -> Result<Prepared, SourceError> {
        let (shape, classes) = match self {
            Source::None => return Err(LearnError::Invalid { item: "data".into(), rule: "is none".into() }.into()),
            Source::File { path, .. } => {
                let input = input::read(path, text.unwrap_or_default(), &self.reading(algorithm))?;
                return Ok(self.prepare_read(algorithm, Arc::new(input))?);
            }
            Source::Generated { shape, .. } => {
                let count = if algorithm.classifies() { shape.classes } else { 0 };
                (*shape, (0..count).map(|c| c.to_string()).collect())
            }
        };
        algorithm.check_shape(&shape)?;
        let schema = Schema::unnamed(shape.columns, Label::None);
        Ok(Prepared { source: self.clone(), shape, classes, schema, data: None, held: HeldOut::None })
    }

    /// Examines a file that was read before, for the same kind of labels, as [`prepare`](Source::prepare) does.
    ///
    /// # Errors
    /// The data does not fit the algorithm.
    pub fn prepare_read(&self, algorithm: &Algorithm, input: Arc<Input>) -> Result<Prepared, LearnError> {
        let shape = Shape { rows: input.data.len(), columns: input.data.width(), classes: input.classes.len() };
        algorithm.check_shape(&shape)?;
        let (classes, schema) = (input.classes.clone(), input.schema.clone());
        Ok(Prepared { source: self.clone(), shape, classes, schema, data: Some(input), held: HeldOut::None })
    }

    /// Returns the rules for reading the source's file for an algorithm. They are of no use for a generator.
    pub fn reading(&self, algorithm: &Algorithm) -> Reading {
        let classify = algorithm.classifies();
        match self {
            Source::File { format, label, categorical, .. } => {
                Reading { format: *format, label: label.clone(), categorical: categorical.clone(), classify }
            }
            Source::None | Source::Generated { .. } => {
                Reading { format: Format::Csv, label: Label::None, categorical: Vec::new(), classify }
            }
        }
    }
}

impl Prepared {
    /// Returns the shape of the data.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Returns the names and categories of the columns.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Holds rows out of training. From then on the shards consist of the other rows. `text` is the content of the
    /// validation file, if there is one.
    ///
    /// # Errors
    /// The file has other columns or classes, or too few rows are left for the algorithm.
    pub fn hold_out(
        mut self,
        algorithm: &Algorithm,
        validation: &Validation,
        text: Option<&str>,
    ) -> Result<Prepared, SourceError> {
        self.held = match validation {
            Validation::Share { share, seed } => {
                let (learnt, held) = Validation::split(*share, *seed, self.shape.rows);
                self.shape.rows = learnt.len();
                if held.is_empty() {
                    let rule = format!("a share of {share} of {} rows has no rows", learnt.len());
                    return Err(LearnError::Invalid { item: "validation".to_owned(), rule }.into());
                }
                if self.data.is_some() { HeldOut::Rows { learnt, held } } else { HeldOut::End(held.len()) }
            }
            Validation::File(path) => {
                let wanted = match algorithm.classifies() {
                    true => LabelsToRead::Classes(None, &self.classes),
                    false if self.schema.label == Label::None => LabelsToRead::Nothing,
                    false => LabelsToRead::Numbers(None),
                };
                let format = Format::of(path);
                HeldOut::File(input::read_as(path, text.unwrap_or_default(), format, &self.schema, wanted)?)
            }
        };
        algorithm.check_shape(&self.shape)?;
        Ok(self)
    }

    /// Returns the rows of a shard of the validation data, in the form that the algorithm needs.
    ///
    /// # Errors
    /// There is no validation data, or the generator cannot make it.
    pub fn validation_shard(&self, algorithm: &Algorithm, shard: usize, shards: usize) -> Result<Data, LearnError> {
        let data = match (&self.held, &self.source, &self.data) {
            (HeldOut::File(input), _, _) => input.data.shard(shard, shards),
            (HeldOut::Rows { held, .. }, _, Some(input)) => {
                let (from, to) = range(held.len(), shard, shards);
                input.data.pick(&held[from..to])
            }
            (HeldOut::End(held), Source::Generated { generator, shape, noise, seed }, _) => {
                let (from, to) = range(*held, shard, shards);
                let rows = (self.shape.rows + from, self.shape.rows + to);
                generate_rows(*generator, *shape, *noise, *seed, rows)?
            }
            _ => return Err(LearnError::Invalid { item: "validation".into(), rule: "is not read".into() }),
        };
        Ok(if algorithm.takes_sparse() { data } else { data.densified(self.shape.columns) })
    }

    /// Returns the rows of a shard, in the form that the algorithm needs.
    ///
    /// # Errors
    /// The generator cannot make them.
    pub fn shard(&self, algorithm: &Algorithm, shard: usize, shards: usize) -> Result<Data, LearnError> {
        let data = match (&self.source, &self.data) {
            (Source::Generated { generator, shape, noise, seed }, _) => {
                let learnt = Shape { rows: self.shape.rows, ..*shape };
                generate(*generator, learnt, *noise, *seed, shard, shards)?
            }
            (Source::File { .. }, Some(input)) => match &self.held {
                HeldOut::Rows { learnt, .. } => {
                    let (from, to) = range(learnt.len(), shard, shards);
                    input.data.pick(&learnt[from..to])
                }
                _ => input.data.shard(shard, shards),
            },
            (Source::File { .. } | Source::None, _) => {
                return Err(LearnError::Invalid { item: "data".into(), rule: "is not read".into() });
            }
        };
        Ok(if algorithm.takes_sparse() { data } else { data.densified(self.shape.columns) })
    }
}
