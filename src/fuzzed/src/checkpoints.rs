//! Checks the recovery of checkpoints of agents.

use agent::{Recovered, Tree};
use protos::mesos::internal::StatusUpdateRecord;
use store::{frame, read_frames};

use crate::pieces::Pieces;

const RUN: &str = "slaves/A/frameworks/F/executors/E/runs/C";
const UPDATES: &str = "tasks/T/task.updates";
/// Files of an agent's meta directory.
const FILES: [&str; 14] = [
    "boot_id",
    "resources/resources_and_operations.state",
    "resources/resources_and_operations.target",
    "resources/resources.info",
    "resources/resources.target",
    "slaves/A/slave.info",
    "slaves/A/drain.config",
    "slaves/A/frameworks/F/framework.info",
    "slaves/A/frameworks/F/framework.pid",
    "slaves/A/frameworks/F/executors/E/executor.info",
    "slaves/A/frameworks/F/executors/E/executor_generated_for_command_task",
    "pids/forked.pid",
    "pids/libprocess.pid",
    "tasks/T/task.info",
];

/// Recovers any content of the files or reports errors. A lenient agent recovers everything that a strict agent
/// accepts, and status updates can be written again.
pub fn checkpoints(data: &[u8]) {
    let mut tree = Tree::default();
    tree.links.insert("slaves/latest".to_owned(), "/work/meta/slaves/A".to_owned());
    tree.links.insert("slaves/A/frameworks/F/executors/E/runs/latest".to_owned(), "C".to_owned());
    let mut pieces = Pieces::new(data);
    while !pieces.is_empty() {
        let number = usize::from(pieces.byte());
        let path = match FILES.get(number) {
            Some(path) if path.starts_with("pids") || path.starts_with("tasks") => format!("{RUN}/{path}"),
            Some(path) => (*path).to_owned(),
            None if number % 2 == 0 => format!("{RUN}/{UPDATES}"),
            None => format!("{RUN}/http.marker"),
        };
        tree.files.insert(path, pieces.bytes().to_vec());
    }
    let lenient = Recovered::read(&tree, false).expect("an agent that is not strict goes on");
    match Recovered::read(&tree, true) {
        Ok(strict) => {
            assert_eq!((strict.errors, &strict.skipped), (0, &lenient.skipped));
            assert_eq!(format!("{strict:?}"), format!("{lenient:?}"));
        }
        Err(_) => assert!(lenient.errors > 0),
    }
    let runs = lenient.agent.iter().flat_map(|agent| &agent.frameworks).flat_map(|framework| &framework.executors);
    for task in runs.filter_map(|executor| executor.latest.as_ref()).flat_map(|run| &run.tasks) {
        let bytes = tree.files.get(&format!("{RUN}/{UPDATES}")).map(Vec::as_slice).unwrap_or_default();
        // Encoded records are compared: a timestamp that is not a number differs from itself.
        let encoded = |records: &[StatusUpdateRecord]| records.iter().flat_map(frame).collect::<Vec<u8>>();
        let again = encoded(&task.records);
        match read_frames::<StatusUpdateRecord>(bytes) {
            Ok((records, _)) => assert_eq!(encoded(&records), again, "both readers agree"),
            Err(_) => assert!(task.records.is_empty()),
        }
        let (records, length) = read_frames(&again).expect("whole frames");
        assert_eq!((encoded(&records), length), (again.clone(), again.len()));
        assert!(task.torn.as_ref().is_none_or(|whole| whole.len() < bytes.len() && bytes.starts_with(whole)));
    }
}
