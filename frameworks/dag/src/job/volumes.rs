//! Determines the paths of the agent that a task in an image's container needs: the directories of its input files, the
//! shared directory, and the runner.
//!
//! They have the same paths inside, so that a job does not change when it gets an image.

use std::path::Path;

use super::{Input, Stage};

/// Characters with which a pattern starts to match any characters.
const WILDCARDS: [char; 3] = ['*', '?', '['];

/// A path of the agent that is mounted into a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Volume {
    /// Path of the volume, outside and inside of the container.
    pub path: String,
    /// Whether tasks may write to the volume.
    pub writes: bool,
}

/// Returns the directory that contains all files of a pattern, possibly in subdirectories.
pub(super) fn directory(pattern: &str) -> &str {
    let fixed = pattern.find(WILDCARDS).map_or(pattern, |at| &pattern[..at]);
    fixed.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Returns the volumes for the container of a stage's task. No volume is below another one, unless it is writable and
/// the other is not.
pub fn volumes(stage: &Stage, runner: &str, shared: Option<&str>) -> Vec<Volume> {
    if stage.image.is_none() || !stage.needs_runner() {
        return Vec::new();
    }
    let mut all = Vec::new();
    // A program without a directory is searched for in the image.
    if runner.starts_with('/') {
        all.push(Volume { path: runner.to_owned(), writes: false });
    }
    if let Input::Files(input) = &stage.input {
        let directory = |file: &String| Volume { path: directory(file).to_owned(), writes: false };
        all.extend(input.files.iter().map(directory));
    }
    all.extend(shared.map(|shared| Volume { path: shared.to_owned(), writes: true }));
    // Sorted, a directory precedes its subdirectories, as is necessary for mounting.
    all.sort();
    let mut needed: Vec<Volume> = Vec::new();
    for volume in all {
        let is_in = |outer: &Volume| outer.writes >= volume.writes && Path::new(&volume.path).starts_with(&outer.path);
        if !needed.iter().any(is_in) {
            // The same path occurs again and is writable now.
            needed.retain(|known| known.path != volume.path);
            needed.push(volume);
        }
    }
    needed
}

#[cfg(test)]
mod tests {
    use crate::job::{Syntax, read};

    use super::*;

    fn of(fields: &str, shared: Option<&str>) -> Vec<String> {
        let text = format!("name = 'j'\n[[stage]]\nname = 's'\ncommand = 'x'\nimage = 'i'\n{fields}\n");
        let stage = read("j.toml", &text, Syntax::Toml).unwrap()[0].stages[0].clone();
        let say = |volume: Volume| format!("{}{}", volume.path, if volume.writes { " rw" } else { "" });
        volumes(&stage, "/opt/tepui", shared).into_iter().map(say).collect()
    }

    #[test]
    fn directories_stand_for_what_is_below_them() {
        assert!(of("tasks = 3", Some("/nfs")).is_empty(), "there is no runner");
        assert_eq!(of("outputs = ['o']", None), ["/opt/tepui"]);
        assert_eq!(of("outputs = ['o']", Some("/nfs/a")), ["/nfs/a rw", "/opt/tepui"]);
        let files = |list: &str| format!("input = {{ files = {list} }}");
        assert_eq!(of(&files("['/d/*.txt', '/d/a/b?/c', '/e/f', '/d0/x']"), None), ["/d", "/d0", "/e", "/opt/tepui"]);
        // The shared directory is below that of the inputs, above it, or the same.
        assert_eq!(of(&files("'/nfs/*'"), Some("/nfs/out")), ["/nfs", "/nfs/out rw", "/opt/tepui"]);
        assert_eq!(of(&files("'/nfs/in/*'"), Some("/nfs")), ["/nfs rw", "/opt/tepui"]);
        assert_eq!(of(&files("['/nfs/*', '/nfs/a/*']"), Some("/nfs")), ["/nfs rw", "/opt/tepui"]);
        assert_eq!(of(&files("'/opt/*'"), None), ["/opt"]);
    }
}
