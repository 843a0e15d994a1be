//! Reads files in the sandbox of a task through its agent, for the log commands.
//!
//! It reads and never writes. Its callers decide which task is meant.

use std::io::Write;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::connect::{MasterArgs, NotFound};

/// Maximum number of bytes that one call reads.
const PIECE: u64 = 64 * 1024;

/// A file in a sandbox.
pub(crate) struct File {
    /// Agent, which answers the calls for files as a master does.
    agent: MasterArgs,
    path: String,
    /// Position of the next byte to read.
    offset: u64,
}

impl File {
    /// Finds the file `name` in the sandbox of a task, on the agent at `address` (`host:port`).
    ///
    /// # Errors
    /// The agent does not answer, or does not know the task.
    pub(crate) async fn find(
        master: &MasterArgs,
        address: &str,
        (framework, task): (Option<&str>, &str),
        name: &str,
    ) -> Result<File> {
        let agent = MasterArgs { master: address.to_owned(), ..master.clone() };
        let state: Value = agent.read("/state").await?;
        let Some(directory) = directory(&state, framework, task) else {
            bail!(
                "the agent at {address} shows no task '{task}': it has not started, its sandbox was deleted, or access \
                 control lists hide it (view_frameworks, view_executors)"
            );
        };
        Ok(File { agent, path: format!("{directory}/{name}"), offset: 0 })
    }

    /// Reads the next piece; empty at the end of the file.
    ///
    /// # Errors
    /// The agent does not answer, or there is no such file.
    async fn next(&mut self) -> Result<Vec<u8>> {
        let (data, size) = self.at(self.offset, PIECE).await?;
        if size < self.offset {
            // The file was truncated or replaced.
            self.offset = 0;
            return Box::pin(self.next()).await;
        }
        self.offset += data.len() as u64;
        Ok(data)
    }

    /// Reads bytes of the file from a position, and the file's size.
    async fn at(&self, offset: u64, length: u64) -> Result<(Vec<u8>, u64)> {
        let body = json!({ "path": self.path, "offset": offset, "length": length });
        let answer = self.agent.call("READ_FILE", &body).await.map_err(|error| match error.is::<NotFound>() {
            true => error.context(format!("there is no {}", self.path)),
            false => error,
        })?;
        let data = answer["data"].as_str().unwrap_or_default();
        let data = BASE64_STANDARD.decode(data).context("the agent's answer cannot be read")?;
        Ok((data, answer["size"].as_u64().unwrap_or_default()))
    }

    /// Moves to the beginning of the last `lines` lines.
    ///
    /// # Errors
    /// As [`next`](File::next).
    pub(crate) async fn skip_to_last(&mut self, lines: usize) -> Result<()> {
        let (_, size) = self.at(0, 0).await?;
        let (mut start, mut wanted) = (size, lines);
        while start > 0 {
            let length = PIECE.min(start);
            let (data, _) = self.at(start - length, length).await?;
            // The newline at the very end belongs to the last line.
            let end = if start == size && data.last() == Some(&b'\n') { data.len() - 1 } else { data.len() };
            let mut newlines = (0..end).rev().filter(|index| data[*index] == b'\n');
            match newlines.nth(wanted.saturating_sub(1)) {
                _ if lines == 0 => break,
                Some(index) => {
                    self.offset = start - length + index as u64 + 1;
                    return Ok(());
                }
                None => wanted -= data[..end].iter().filter(|byte| **byte == b'\n').count(),
            }
            start -= length;
        }
        self.offset = start;
        Ok(())
    }

    /// Reads the rest, up to about `limit` bytes. Bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As [`next`](File::next).
    pub(crate) async fn rest(&mut self, limit: usize) -> Result<String> {
        let mut all = Vec::new();
        while all.len() < limit {
            let piece = self.next().await?;
            if piece.is_empty() {
                break;
            }
            all.extend(piece);
        }
        Ok(String::from_utf8_lossy(&all).into_owned())
    }

    /// Writes the rest of the file, up to its present end, to `out`. Stops if `out` is closed, as by `head`.
    ///
    /// # Errors
    /// As [`next`](File::next).
    pub(crate) async fn copy(&mut self, out: &mut impl Write) -> Result<()> {
        loop {
            let piece = self.next().await?;
            if piece.is_empty() || out.write_all(&piece).and_then(|()| out.flush()).is_err() {
                return Ok(());
            }
        }
    }
}

/// Finds the sandbox of a task in the `/state` of its agent: that of its executor, or a directory below it for a task
/// of a pod.
fn directory(state: &Value, framework: Option<&str>, task: &str) -> Option<String> {
    let list = |value: &Value, keys: &[&str]| -> Vec<Value> {
        keys.iter().flat_map(|key| value[key].as_array().cloned().unwrap_or_default()).collect()
    };
    let frameworks = list(state, &["frameworks", "completed_frameworks"]);
    let of_it = frameworks.iter().filter(|known| framework.is_none_or(|id| known["id"] == id));
    let executors: Vec<Value> = of_it.flat_map(|one| list(one, &["executors", "completed_executors"])).collect();
    let mut places = executors.iter().filter_map(|executor| {
        let directory = executor["directory"].as_str()?;
        let tasks = list(executor, &["tasks", "queued_tasks", "completed_tasks"]);
        let Some(known) = tasks.iter().find(|known| known["id"] == task) else {
            // The executor of a task with a command has the task's id.
            return (executor["id"] == task).then(|| directory.to_owned());
        };
        let last = known["statuses"].as_array().and_then(|statuses| statuses.last());
        let is_nested = last.is_some_and(|status| status["container_status"]["container_id"]["parent"].is_object());
        Some(if is_nested { format!("{directory}/tasks/{task}") } else { directory.to_owned() })
    });
    places.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_found_among_running_and_completed_executors() {
        let nested = json!([{ "container_status": { "container_id": { "value": "c", "parent": { "value": "p" } } } }]);
        let state = json!({
            "frameworks": [{ "id": "f", "executors": [
                { "id": "a", "directory": "/a" },
                { "id": "pod", "directory": "/pod", "tasks": [{ "id": "one", "statuses": nested }] },
                { "id": "custom", "directory": "/custom", "completed_tasks": [{ "id": "x" }, { "id": "y" }] },
            ] }],
            "completed_frameworks": [{ "id": "g", "completed_executors": [{ "id": "a", "directory": "/old" }] }],
        });
        let of = |framework, task| directory(&state, framework, task);
        assert_eq!(of(None, "a").as_deref(), Some("/a"));
        assert_eq!(of(Some("g"), "a").as_deref(), Some("/old"));
        assert_eq!(of(Some("f"), "one").as_deref(), Some("/pod/tasks/one"));
        assert_eq!(of(Some("f"), "y").as_deref(), Some("/custom"));
        assert_eq!(of(None, "z"), None);
    }
}
