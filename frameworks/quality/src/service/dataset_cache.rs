//! A cache of data files that a worker has read, for later jobs with the same data.
//!
//! It holds a limited number of bytes, and drops the least recently used file first.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::input::{self, Input, Reading};
use crate::job::SourceError;

/// A cache of data files.
#[derive(Debug)]
pub(super) struct DatasetCache {
    most: u64,
    /// Files, the most recently used last.
    files: Vec<(File, Arc<Input>)>,
}

/// The identity of a cached file: path, kind of reading, and version. A file that was written since then is another
/// one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) reading: Reading,
    version: Option<(u64, SystemTime)>,
}

impl File {
    pub(super) fn new(path: &str, reading: Reading) -> File {
        File { path: path.to_owned(), reading, version: None }
    }

    /// Reads the file from the disk.
    pub(super) fn read(&self) -> Result<Input, SourceError> {
        let bytes = fs::read(&self.path);
        let bytes = bytes.map_err(|source| SourceError::Read { path: self.path.clone(), source })?;
        let text = input::text_of(&self.path, self.reading.format, bytes)?;
        Ok(input::read(&self.path, &text, &self.reading)?)
    }
}

impl DatasetCache {
    /// Creates a cache for this many bytes.
    pub(super) fn new(most: u64) -> DatasetCache {
        DatasetCache { most, files: Vec::new() }
    }

    /// Returns the content of a file from the cache, if it is cached and has not changed; otherwise reads the file and
    /// caches it.
    pub(super) fn get(&mut self, mut file: File) -> Result<Arc<Input>, SourceError> {
        let metadata = fs::metadata(Path::new(&file.path)).ok();
        file.version = metadata.and_then(|m| Some((m.len(), m.modified().ok()?)));
        if let Some(at) = self.files.iter().position(|(f, _)| *f == file && f.version.is_some()) {
            let found = self.files.remove(at);
            self.files.push(found);
            return Ok(self.files[self.files.len() - 1].1.clone());
        }
        self.files.retain(|(f, _)| f.path != file.path || f.version == file.version);
        let input = Arc::new(file.read()?);
        let bytes = input.data.bytes();
        if bytes > self.most {
            let (path, most) = (&file.path, self.most);
            tracing::warn!(path, bytes, most, "the data is larger than the cache and is read again for each use");
            return Ok(input);
        }
        self.files.push((file, input.clone()));
        while self.files.iter().map(|(_, i)| i.data.bytes()).sum::<u64>() > self.most {
            self.files.remove(0);
        }
        Ok(input)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Format, Label};

    #[test]
    fn a_file_is_read_once_unless_it_changes_or_is_too_large() {
        let path = std::env::temp_dir().join(format!("quality-cache-{}.csv", std::process::id()));
        let other = path.with_extension("2.csv");
        fs::write(&path, "1,2\n3,4\n").unwrap();
        fs::write(&other, "1,2\n3,4\n").unwrap();
        let reading = Reading { format: Format::Csv, label: Label::Last, categorical: Vec::new(), classify: false };
        let file = |path: &Path| File::new(&path.display().to_string(), reading.clone());
        // A file takes 32 bytes: two features and two labels.
        let mut cache = DatasetCache::new(40);
        let first = cache.get(file(&path)).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.get(file(&path)).unwrap()));
        let classes = File::new(&path.display().to_string(), Reading { classify: true, ..reading.clone() });
        assert_eq!(cache.get(classes).unwrap().classes, ["2", "4"], "read in another way it is another");
        assert!(!Arc::ptr_eq(&first, &cache.get(file(&path)).unwrap()), "there is room for one");
        fs::write(&path, "1,2\n3,5\n7,8\n").unwrap();
        assert_eq!(cache.get(file(&path)).unwrap().data.labels, [2.0, 5.0, 8.0]);
        assert!(cache.files.is_empty(), "it has become too large");
        cache.get(file(&other)).unwrap();
        assert_eq!(cache.files.len(), 1);
        fs::remove_file(&path).unwrap();
        assert!(cache.get(file(&path)).is_err());
        fs::remove_file(&other).unwrap();
    }
}
