//! Publishes a task's outputs atomically: checks that they exist, lists them with lengths and checksums, and renames
//! their directory. Only one of several attempts is published.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::failed::TaskFailure;
use super::{Fault, MANIFEST, Published, Spec};
use crate::job::template::PARTITION;

/// The directories of an attempt's outputs, before and after they are published.
#[derive(Debug)]
pub(super) struct OutputDirectories {
    /// Directory into which the program writes.
    pub(super) writes: PathBuf,
    /// Directory from which readers read.
    published: PathBuf,
}

impl OutputDirectories {
    /// Creates the directory into which the program writes, and removes what an earlier run of the same attempt has
    /// left there.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub(super) fn make(spec: &Spec, sandbox: &Path) -> Result<OutputDirectories, TaskFailure> {
        let place = match &spec.directory {
            Some(directory) => OutputDirectories {
                writes: PathBuf::from(super::attempt_directory(directory, spec.index, spec.attempt)),
                published: Path::new(directory).join(spec.index.to_string()),
            },
            None => OutputDirectories { writes: sandbox.join(super::OUTPUT), published: sandbox.join(super::OUTPUT) },
        };
        let _ = fs::remove_dir_all(&place.writes);
        fs::create_dir_all(&place.writes).map_err(|error| place.failed(&error))?;
        Ok(place)
    }

    fn failed(&self, error: &io::Error) -> TaskFailure {
        let what = if error.kind() == io::ErrorKind::StorageFull { "there is no room left: " } else { "" };
        TaskFailure::new(Fault::Storage, format!("{}: {what}{error}", self.writes.display()))
    }

    /// Publishes the outputs of the program. Outputs that another attempt has published stay, if they are complete.
    ///
    /// # Errors
    /// An output is missing, or cannot be published.
    pub(super) fn publish(&self, spec: &Spec) -> Result<(), TaskFailure> {
        let list = self.list(spec)?;
        let text = serde_json::to_vec(&list).unwrap_or_default();
        // Readers look for the manifest first, so it must appear last.
        let temporary = self.writes.join(format!("{MANIFEST}.new"));
        fs::write(&temporary, text).map_err(|error| self.failed(&error))?;
        fs::rename(&temporary, self.writes.join(MANIFEST)).map_err(|error| self.failed(&error))?;
        if self.writes == self.published {
            return Ok(());
        }
        if self.is_published() {
            let _ = fs::remove_dir_all(&self.writes);
            return Ok(());
        }
        let Err(error) = fs::rename(&self.writes, &self.published) else { return Ok(()) };
        // The existing outputs are damaged, or another attempt was faster.
        if self.is_published() {
            let _ = fs::remove_dir_all(&self.writes);
            return Ok(());
        }
        let aside = self.writes.with_extension(super::DAMAGED);
        let moved = fs::rename(&self.published, &aside).and_then(|()| fs::rename(&self.writes, &self.published));
        let _ = fs::remove_dir_all(&aside);
        moved.map_err(|_| self.failed(&error))
    }

    /// Returns whether another attempt has published complete outputs.
    fn is_published(&self) -> bool {
        let Ok(bytes) = fs::read(self.published.join(MANIFEST)) else { return false };
        let Ok(list) = serde_json::from_slice::<Vec<Published>>(&bytes) else { return false };
        list.iter().all(|one| fs::metadata(self.published.join(&one.name)).is_ok_and(|found| found.len() == one.length))
    }

    /// Returns the outputs that exist, with lengths and checksums.
    fn list(&self, spec: &Spec) -> Result<Vec<Published>, TaskFailure> {
        let mut list = Vec::new();
        for output in &spec.outputs {
            let mut found = false;
            let names: Vec<(String, Option<u32>)> = match spec.partitions {
                None => vec![(output.clone(), None)],
                Some(count) => {
                    (0..count).map(|number| (output.replace(PARTITION, &number.to_string()), Some(number))).collect()
                }
            };
            for (name, partition) in names {
                match sum(&self.writes.join(&name)) {
                    Ok((length, checksum)) => {
                        found = true;
                        list.push(Published { name, output: output.clone(), partition, length, checksum });
                    }
                    // A task may have no file for some partitions, but not for all of them.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(self.failed(&error)),
                }
            }
            if !found {
                let message = format!("the output '{output}' is missing, although the program succeeded");
                return Err(TaskFailure::new(Fault::Output, message));
            }
        }
        Ok(list)
    }

    /// Returns the number that an output contains.
    ///
    /// # Errors
    /// The output is missing, or is not a number.
    pub(super) fn value(&self, name: &str) -> Result<f64, TaskFailure> {
        let failed = |why: String| TaskFailure::new(Fault::Output, format!("the value in '{name}': {why}"));
        let directory = if self.writes.exists() { &self.writes } else { &self.published };
        let text = fs::read_to_string(directory.join(name)).map_err(|error| failed(error.to_string()))?;
        let number: f64 = text.trim().parse().map_err(|_| failed(format!("'{}' is not a number", text.trim())))?;
        if number.is_finite() { Ok(number) } else { Err(failed("it is not finite".to_owned())) }
    }
}

/// Returns the length and the CRC-32C of a file.
fn sum(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = fs::File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "an output is a file, and this is a directory"));
    }
    let (mut length, mut checksum, mut buffer) = (0, 0, vec![0; 256 << 10]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((length, checksum));
        }
        checksum = crc32c::crc32c_append(checksum, &buffer[..read]);
        length += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jobs::Run;

    fn spec(directory: &Path, attempt: u32, outputs: &[&str], partitions: Option<u32>) -> Spec {
        Spec {
            id: "t".into(),
            index: 3,
            attempt,
            run: Run::Command("true".into()),
            extents: Vec::new(),
            lines: false,
            sources: None,
            stdin: false,
            outputs: outputs.iter().map(|o| (*o).to_owned()).collect(),
            partitions,
            directory: Some(directory.display().to_string()),
            value: None,
            api: String::new(),
        }
    }

    #[test]
    fn one_attempt_is_published_and_a_damaged_one_replaced() {
        let directory = std::env::temp_dir().join(format!("tepui-publish-{}", std::process::id()));
        let write = |attempt: u32, text: &str| {
            let spec = spec(&directory, attempt, &["out"], None);
            let place = OutputDirectories::make(&spec, Path::new("/nowhere")).unwrap();
            fs::write(place.writes.join("out"), text).unwrap();
            place.publish(&spec).unwrap();
            fs::read_to_string(directory.join("3/out")).unwrap()
        };
        assert_eq!(write(1, "first"), "first");
        assert_eq!(write(2, "second"), "first", "what is published stays");
        fs::remove_file(directory.join("3/out")).unwrap();
        assert_eq!(write(3, "third"), "third", "what is damaged is replaced");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "nothing else is left");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_reported() {
        let full = Path::new("/proc/self/no-room");
        let error = OutputDirectories::make(&spec(full, 1, &["out"], None), Path::new("/nowhere")).unwrap_err();
        assert_eq!(error.fault, Fault::Storage);
        assert!(error.message.contains("/proc/self/no-room/.tepui-3.1"), "{}", error.message);
        let place = OutputDirectories { writes: "/nowhere".into(), published: "/nowhere".into() };
        let error = place.failed(&io::Error::from(io::ErrorKind::StorageFull));
        assert!(error.message.contains("there is no room left"), "{}", error.message);
    }

    #[test]
    fn missing_outputs_are_named_and_missing_partitions_are_empty() {
        let directory = std::env::temp_dir().join(format!("tepui-partitions-{}", std::process::id()));
        let spec = spec(&directory, 1, &["p.{partition}"], Some(3));
        let place = OutputDirectories::make(&spec, Path::new("/nowhere")).unwrap();
        let error = place.publish(&spec).unwrap_err();
        assert_eq!(error.fault, Fault::Output);
        assert!(error.message.contains("'p.{partition}' is missing"), "{}", error.message);
        fs::write(place.writes.join("p.1"), "x").unwrap();
        place.publish(&spec).unwrap();
        let list: Vec<Published> =
            serde_json::from_slice(&fs::read(directory.join("3").join(MANIFEST)).unwrap()).unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].partition, list[0].length), (Some(1), 1));
        fs::remove_dir_all(&directory).unwrap();
    }
}
