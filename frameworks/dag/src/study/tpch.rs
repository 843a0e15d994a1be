//! Reads the TPC-H traces of the public simulator of Decima: a directory with `SIZE/adj_mat_N.npy` and
//! `SIZE/task_duration_N.npy`. It opens no files: the caller passes their bytes.

use std::sync::Arc;

use super::error::StudyError;
use super::job::{Durations, JobModel, StageModel};
use super::pickle::Value;
use super::{npy, pickle};
use crate::order::Amounts;

/// Available sizes of the input.
pub const SIZES: [&str; 7] = ["2g", "5g", "10g", "20g", "50g", "80g", "100g"];

/// Sizes that the paper uses.
pub const SIX: [&str; 6] = ["2g", "5g", "10g", "20g", "50g", "100g"];

/// Number of queries of TPC-H.
pub const QUERIES: u32 = 22;

/// Models of jobs by size and query.
#[derive(Clone, Debug)]
pub struct Queries {
    jobs: Vec<(String, u32, Arc<JobModel>)>,
}

impl Queries {
    /// Reads all queries of all sizes. `read` returns the bytes of a file of the directory.
    ///
    /// # Errors
    /// The first file that cannot be read or is not as expected.
    pub fn read(read: &dyn Fn(&str) -> std::io::Result<Vec<u8>>) -> Result<Queries, StudyError> {
        let mut jobs = Vec::new();
        for size in SIZES {
            for query in 1..=QUERIES {
                let part = |what: &str| {
                    let name = format!("{size}/{what}_{query}.npy");
                    read(&name)
                        .map_err(|why| StudyError::File { name: name.clone(), why: why.into() })
                        .map(|bytes| (name, bytes))
                };
                let ((graph, edges), (durations, bytes)) = (part("adj_mat")?, part("task_duration")?);
                let edges = npy::square(&edges).map_err(|why| StudyError::File { name: graph, why: why.into() })?;
                let stages =
                    pickle::object_of_npy(&bytes).and_then(|value| stages(&format!("{size}-{query}"), &edges, &value));
                let stages = stages.map_err(|why| StudyError::File { name: durations, why: why.into() })?;
                let job = JobModel { name: format!("tpch-{size}-{query}"), stages };
                jobs.push((size.to_owned(), query, Arc::new(job)));
            }
        }
        Ok(Queries { jobs })
    }

    /// Creates queries from generated jobs.
    pub(super) fn of(jobs: Vec<(String, u32, Arc<JobModel>)>) -> Queries {
        Queries { jobs }
    }

    /// Returns the jobs of these sizes.
    pub fn of_sizes(&self, sizes: &[&str]) -> Vec<Arc<JobModel>> {
        self.jobs.iter().filter(|(size, ..)| sizes.contains(&size.as_str())).map(|(.., job)| job.clone()).collect()
    }
}

/// Returns the stages in an order in which parents come first.
fn stages(name: &str, edges: &[Vec<f64>], value: &Value) -> Result<Vec<StageModel>, StudyError> {
    let order = sorted(edges)?;
    let mut place = vec![0_u32; edges.len()];
    for (at, node) in (0..).zip(&order) {
        place[*node] = at;
    }
    order
        .iter()
        .map(|node| {
            let stage = value.get(&Value::Integer(*node as i64));
            let stage = stage.ok_or_else(|| StudyError::format("a stage for every row", format!("none for {node}")))?;
            let durations = durations(stage)?;
            // Fresh tasks are also counted in the first wave, as the file has them.
            let tasks = durations.first().map_or(0, |(all, _)| *all);
            let durations: Vec<Durations> = durations.into_iter().map(|(_, durations)| durations).collect();
            let all = durations.iter().flat_map(|d| d.first.iter().chain(&d.rest).chain(&d.fresh));
            let (sum, count) = all.fold((0, 0), |(sum, count), one| (sum + one, count + 1));
            let mut parents: Vec<u32> =
                (0..edges.len()).filter(|from| edges[*from][*node] == 1.0).map(|from| place[from]).collect();
            parents.sort_unstable();
            if tasks == 0 || count == 0 {
                return Err(StudyError::format("stages with tasks", format!("stage {node} has none")));
            }
            let key = format!("{name}-{node}");
            Ok(StageModel { key, tasks, parents, rough: sum / count, demand: Amounts::default(), durations })
        })
        .collect()
}

/// Sorts nodes so that parents come before their children, otherwise by number.
fn sorted(edges: &[Vec<f64>]) -> Result<Vec<usize>, StudyError> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < edges.len() {
        let free = |node: &usize| {
            !order.contains(node) && (0..edges.len()).all(|from| edges[from][*node] != 1.0 || order.contains(&from))
        };
        let next = (0..edges.len()).find(free);
        order.push(next.ok_or_else(|| StudyError::format("an acyclic graph", "it has one"))?);
    }
    Ok(order)
}

/// Returns the number of tasks and the durations for each number of executors.
fn durations(stage: &Value) -> Result<Vec<(u32, Durations)>, StudyError> {
    let part = |name: &str| match stage.get(&Value::Text(name.to_owned())) {
        Some(Value::Dictionary(entries)) => entries
            .iter()
            .map(|(key, list)| match (key, list.integers()) {
                (Value::Integer(executors), Some(list)) => {
                    let list = list.into_iter().map(|one| one.clamp(0, 1 << 40) as u64).collect::<Vec<_>>();
                    Ok((u32::try_from(*executors).unwrap_or(0), list))
                }
                _ => Err(StudyError::format("lists of durations by executors", "there is something else")),
            })
            .collect::<Result<Vec<_>, _>>(),
        _ => Err(StudyError::format("first_wave, rest_wave and fresh_durations", "one is missing")),
    };
    let (first, rest, fresh) = (part("first_wave")?, part("rest_wave")?, part("fresh_durations")?);
    let of = |part: &[(u32, Vec<u64>)], executors: u32| {
        part.iter().find(|(key, _)| *key == executors).map_or_else(Vec::new, |(_, list)| list.clone())
    };
    let mut all: Vec<(u32, Durations)> = first
        .iter()
        .map(|(executors, first)| {
            let (rest, fresh) = (of(&rest, *executors), of(&fresh, *executors));
            let tasks = u32::try_from(first.len() + rest.len()).unwrap_or(u32::MAX);
            (tasks, Durations { executors: *executors, first: without(first, &fresh), rest, fresh })
        })
        .collect();
    all.sort_by_key(|(_, durations)| durations.executors);
    // A number of executors without a first wave uses that of the next smaller one.
    for at in 1..all.len() {
        if all[at].1.first.is_empty() {
            all[at].1.first = all[at - 1].1.first.clone();
        }
    }
    Ok(all)
}

/// Returns the durations that are not in the other list, which can contain one several times.
fn without(all: &[u64], other: &[u64]) -> Vec<u64> {
    let mut other = other.to_vec();
    other.sort_unstable();
    let mut left = Vec::new();
    for one in all {
        match other.binary_search(one) {
            Ok(at) => {
                other.remove(at);
            }
            Err(_) => left.push(*one),
        }
    }
    left
}
