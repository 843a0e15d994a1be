//! Deletes directories in the background, one after the other, in the order of the requests.
//!
//! The core decides how many and when (`src/agent/src/gc.rs`). A directory that is used again before its turn is not
//! deleted. If its deletion has begun, the new user waits until it is done.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustc_hash::FxHashSet;
use tokio::runtime::Handle;

use base::lock;

/// A queue of directories that are deleted in the background. Clones share the queue.
#[derive(Clone)]
pub struct Deleter {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// Signalled when a directory has been deleted.
    deleted: Condvar,
    /// Called with the path of each directory before it is deleted, with the queue locked.
    before: Box<dyn Fn(&str) + Send + Sync>,
    delete: Box<dyn Fn(&Path) + Send + Sync>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<String>,
    /// Paths of the queue that are still to be deleted.
    due: FxHashSet<String>,
    /// Path that is being deleted.
    current: Option<String>,
    /// Whether a thread works on the queue.
    is_running: bool,
}

impl State {
    /// Removes `path` and the directories above it from the queue.
    fn spare(&mut self, path: &Path) {
        if !self.due.is_empty() {
            for above in path.ancestors().filter_map(Path::to_str) {
                self.due.remove(above);
            }
        }
    }

    /// Returns whether the directory that is being deleted is `path` or one above it.
    fn is_deleting(&self, path: &Path) -> bool {
        self.current.as_ref().is_some_and(|current| path.starts_with(current))
    }
}

impl Deleter {
    /// Creates a deleter that calls `delete` for each path; `before` is called first, and must not block.
    pub fn new(
        before: impl Fn(&str) + Send + Sync + 'static,
        delete: impl Fn(&Path) + Send + Sync + 'static,
    ) -> Deleter {
        let (before, delete) = (Box::new(before), Box::new(delete));
        Deleter { shared: Arc::new(Shared { state: Mutex::default(), deleted: Condvar::new(), before, delete }) }
    }

    /// Queues absolute paths for deletion.
    pub fn push(&self, paths: Vec<String>, runtime: &Handle) {
        let mut state = lock(&self.shared.state);
        state.due.extend(paths.iter().cloned());
        state.queue.extend(paths);
        if !std::mem::replace(&mut state.is_running, true) {
            let shared = Arc::clone(&self.shared);
            runtime.spawn_blocking(move || shared.run());
        }
    }

    /// Removes `path` and the directories above it from the queue, because it is used again. Does not block.
    pub fn spare(&self, path: &Path) {
        lock(&self.shared.state).spare(path);
    }

    /// Empties the queue, because the process ends; a deletion in progress continues. The next agent process collects
    /// what is left.
    pub fn end(&self) {
        let mut state = lock(&self.shared.state);
        state.queue.clear();
        state.due.clear();
    }

    /// Removes `path` and the directories above it from the queue, and waits if one of them is being deleted.
    pub fn wait(&self, path: &Path) {
        let mut state = lock(&self.shared.state);
        state.spare(path);
        while state.is_deleting(path) {
            state = self.shared.deleted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    /// Deletes directories until the queue is empty.
    fn run(&self) {
        while let Some(path) = self.next() {
            (self.delete)(Path::new(&path));
            lock(&self.state).current = None;
            self.deleted.notify_all();
        }
    }

    /// Returns the next directory to delete; without one the thread ends.
    fn next(&self) -> Option<String> {
        let mut state = lock(&self.state);
        let mut next = state.queue.pop_front();
        while next.as_ref().is_some_and(|path| !state.due.remove(path)) {
            next = state.queue.pop_front();
        }
        state.is_running = next.is_some();
        state.current.clone_from(&next);
        next.inspect(|path| (self.before)(path))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn paths(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Returns a deleter that reports each path, and then waits for a message.
    fn stepped() -> (Deleter, mpsc::Receiver<String>, mpsc::Sender<()>) {
        let (report, reports) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let gone = Mutex::new(gone);
        let before = move |path: &str| report.send(path.to_owned()).unwrap();
        (Deleter::new(before, move |_: &Path| lock(&gone).recv().unwrap()), reports, go)
    }

    #[test]
    fn the_oldest_goes_first_and_what_is_used_again_is_spared() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (deleter, reports, go) = stepped();
        deleter.push(paths(&["/w/a", "/w/b", "/w/bc"]), runtime.handle());
        deleter.push(paths(&["/w/d"]), runtime.handle());
        assert_eq!(reports.recv().unwrap(), "/w/a");
        deleter.spare(Path::new("/w/b/runs/1"));
        for next in ["/w/bc", "/w/d"] {
            go.send(()).unwrap();
            assert_eq!(reports.recv().unwrap(), next);
        }
        // Only a deletion in progress is waited for.
        deleter.wait(Path::new("/w/a/runs/1"));
        let waits = deleter.clone();
        let waiting = std::thread::spawn(move || waits.wait(Path::new("/w/d/runs/2")));
        go.send(()).unwrap();
        waiting.join().unwrap();
        assert_eq!(lock(&deleter.shared.state).current, None);
        // New work starts the thread again.
        deleter.push(paths(&["/w/e", "/w/f"]), runtime.handle());
        assert_eq!(reports.recv().unwrap(), "/w/e");
        deleter.end();
        go.send(()).unwrap();
        drop((runtime, deleter));
        assert!(reports.recv().is_err(), "what is left when the process ends is not deleted");
    }
}
