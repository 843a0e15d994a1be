//! Data-parallel training algorithms, and their models.
//!
//! Data is divided into *shards*. Training runs in *rounds*: a [`Learner`] provides
//! [`parameters`](Learner::parameters), [`partial`] computes numbers from them and one shard (a gradient, a statistic,
//! a histogram), and [`fold`](Learner::fold) combines the numbers of all shards in the order of the shards and makes a
//! step. The placement of shards and the number of machines do not influence the result: sums are always computed in
//! the same order.
//!
//! This module opens no file and does not know workers, jobs or cores.

mod algorithm;
mod critical;
mod data;
mod descent;
mod error;
mod generate;
mod groups;
mod grow;
mod kmeans;
mod learner;
mod linear;
mod local;
mod method;
mod model;
mod multiclass;
mod net;
mod perceptron;
mod program;
mod sample;
mod scaling;
mod score;
mod skipping;
mod topics;
mod trees;

pub use algorithm::{Algorithm, Shape};
pub use critical::{CriticalRows, RowShares};
pub(crate) use data::range;
pub use data::{Data, Rows, Sparse};
pub use error::LearnError;
pub(crate) use generate::generate_rows;
pub use generate::{Generator, generate};
pub use kmeans::{ClusterModel, KMeansOptions};
pub use learner::{Learner, Round, ShardCache, model_of, partial};
pub use linear::{LinearModel, LinearOptions};
pub use local::{LocalTraining, Trained};
pub use model::Model;
pub use multiclass::ClassesModel;
pub use perceptron::{Perceptron, PerceptronOptions};
pub use program::ProgramOptions;
pub use score::{Score, combined, score};
pub use skipping::{model_of as model_of_critical, partial as partial_of_critical, score as score_of_critical};
pub use topics::{TopicModel, TopicsOptions};
pub use trees::{ForestModel, Task, TreesOptions};

#[cfg(test)]
mod tests;
