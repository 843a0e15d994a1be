//! Algorithms that train data-parallel, and the models that come out.
//!
//! Data is cut into *shards*. Training goes in *rounds*: a [`Learner`] gives out [`parameters`](Learner::parameters),
//! [`partial`] turns them and one shard into numbers (a gradient, a statistic, a histogram), and
//! [`fold`](Learner::fold) takes the numbers of all shards in the shards' order and makes a step. Who computes which
//! shard, and on how many machines, cannot change the outcome: sums are always taken in the same order.
//!
//! This module opens no file and knows nothing of workers, jobs or cores.

mod algorithm;
mod data;
mod descent;
mod error;
mod generate;
mod grow;
mod kmeans;
mod learner;
mod linear;
mod local;
mod model;
mod net;
mod perceptron;
mod sample;
mod scaling;
mod topics;
mod trees;

pub use algorithm::{Algorithm, Shape};
pub use data::{Data, Rows, Sparse};
pub use error::LearnError;
pub use generate::{Generator, generate};
pub use kmeans::{ClusterModel, KMeansOptions};
pub use learner::{Learner, Memory, Round, partial};
pub use linear::{LinearModel, LinearOptions};
pub use local::{Local, Trained};
pub use model::Model;
pub use perceptron::{Perceptron, PerceptronOptions};
pub use topics::{TopicModel, TopicsOptions};
pub use trees::{ForestModel, Task, TreesOptions};

#[cfg(test)]
mod tests;
