//! Sends pictures to viewers, to each at the rate of its connection. A viewer never delays the sender or another
//! viewer: pictures that it does not take are skipped. Makes no pictures.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sdk::driver::api::{Events, Response, events};
use tokio::sync::watch;

use super::{CONTENT_TYPE, PictureHeader};
use crate::abr::live::{RUNGS, Viewer};

/// Maximum number of viewers of all queries together.
const VIEWERS_MAX: usize = 64;
/// Interval at which connections are checked.
const TICK: Duration = Duration::from_millis(50);

/// A picture of a query: a JPEG file.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) seconds: f64,
    pub(crate) jpeg: Vec<u8>,
    /// Width and height of the source in pixels, if viewers are told.
    pub(crate) source_size: Option<(usize, usize)>,
}

/// Last picture of a rung; `None` before the first.
type Last = Option<Arc<Picture>>;

/// The live views of all queries.
#[derive(Debug, Default)]
pub(crate) struct Views {
    queries: Mutex<BTreeMap<String, Query>>,
    numbers: AtomicU64,
}

#[derive(Debug)]
struct Query {
    /// Number that distinguishes queries that had the same name.
    number: u64,
    /// Number of viewers of each rung.
    viewers: [usize; RUNGS.len()],
    pictures: [watch::Sender<Last>; RUNGS.len()],
}

/// Reason why a live view cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewRefused {
    /// The maximum number of viewers is reached.
    TooManyViewers,
}

impl Views {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Query>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rungs of a query that have viewers.
    pub(crate) fn viewed_rungs(&self, query: &str) -> Vec<usize> {
        let viewers = self.viewers(query);
        (0..RUNGS.len()).filter(|rung| viewers[*rung] > 0).collect()
    }

    /// Returns the number of viewers of each rung.
    pub(crate) fn viewers(&self, query: &str) -> [usize; RUNGS.len()] {
        self.lock().get(query).map(|query| query.viewers).unwrap_or_default()
    }

    /// Records that a picture has arrived. Only the last one of each rung is kept.
    pub(crate) fn add(&self, query: &str, rung: usize, picture: Picture) {
        if let Some(sender) = self.lock().get(query).and_then(|query| query.pictures.get(rung)) {
            sender.send_replace(Some(Arc::new(picture)));
        }
    }

    /// Ends the live views of a query.
    pub(crate) fn close(&self, query: &str) {
        self.lock().remove(query);
    }

    /// Opens a stream of pictures for a viewer.
    ///
    /// # Errors
    /// Returns an error if there are too many viewers.
    pub(crate) fn open(self: &Arc<Views>, query: &str, viewer: Viewer) -> Result<Response, ViewRefused> {
        let registration = ViewerRegistration::register(self, query)?;
        let (events, response) = events(CONTENT_TYPE);
        tokio::spawn(feed(registration, events, viewer));
        Ok(response)
    }
}

/// A registered viewer of a query; it is removed when this is dropped.
struct ViewerRegistration {
    views: Arc<Views>,
    query: String,
    /// Number of the query; a later query with the same name has another one.
    number: u64,
    rung: usize,
}

impl ViewerRegistration {
    fn register(views: &Arc<Views>, query: &str) -> Result<ViewerRegistration, ViewRefused> {
        let mut queries = views.lock();
        let all: usize = queries.values().map(|query| query.viewers.iter().sum::<usize>()).sum();
        if all >= VIEWERS_MAX {
            return Err(ViewRefused::TooManyViewers);
        }
        let number = views.numbers.fetch_add(1, Ordering::Relaxed);
        let new =
            || Query { number, viewers: Default::default(), pictures: std::array::from_fn(|_| watch::channel(None).0) };
        let entry = queries.entry(query.to_owned()).or_insert_with(new);
        entry.viewers[0] += 1;
        Ok(ViewerRegistration { views: views.clone(), query: query.to_owned(), number: entry.number, rung: 0 })
    }

    /// Returns the pictures of the viewer's rung; `None` if the query has ended.
    fn pictures(&self) -> Option<watch::Receiver<Last>> {
        let queries = self.views.lock();
        let query = queries.get(&self.query).filter(|query| query.number == self.number)?;
        Some(query.pictures[self.rung].subscribe())
    }

    fn change(&mut self, rung: usize) {
        let mut queries = self.views.lock();
        if let Some(query) = queries.get_mut(&self.query).filter(|query| query.number == self.number) {
            query.viewers[self.rung] = query.viewers[self.rung].saturating_sub(1);
            query.viewers[rung] += 1;
        }
        drop(queries);
        self.rung = rung;
    }
}

impl Drop for ViewerRegistration {
    fn drop(&mut self) {
        let mut queries = self.views.lock();
        if let Some(query) = queries.get_mut(&self.query).filter(|query| query.number == self.number) {
            query.viewers[self.rung] = query.viewers[self.rung].saturating_sub(1);
            if query.viewers.iter().all(|viewers| *viewers == 0) {
                queries.remove(&self.query);
            }
        }
    }
}

/// Sends pictures until the viewer disconnects or the query ends.
async fn feed(mut registration: ViewerRegistration, events: Events, mut viewer: Viewer) {
    let Some(mut pictures) = registration.pictures() else { return };
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut line = Line::default();
    let mut last = tokio::time::Instant::now();
    loop {
        tokio::select! {
            now = tick.tick() => {
                let passed = now.duration_since(last).as_secs_f64();
                last = now;
                if !line.pass(passed, &events, &mut viewer) || viewer.rung() == registration.rung {
                    continue;
                }
                registration.change(viewer.rung());
                let Some(others) = registration.pictures() else { return };
                pictures = others;
            }
            changed = pictures.changed() => {
                if changed.is_err() {
                    return;
                }
                let picture = pictures.borrow_and_update().clone();
                if let Some(picture) = picture {
                    viewer.picture(registration.rung, picture.jpeg.len());
                    if !line.send(&picture, registration.rung, &events) {
                        return;
                    }
                }
            }
            _ = events.closed() => return,
        }
    }
}

/// State of what is sent over a viewer's connection.
#[derive(Debug, Default)]
struct Line {
    /// Bytes that were sent, and the part of them that the connection has taken.
    sent: usize,
    taken: usize,
    /// Time for which a picture has been waiting, in seconds.
    age: f64,
    left_out: u64,
}

impl Line {
    /// Records that time has passed. Returns whether the viewer's rung was chosen again.
    fn pass(&mut self, passed: f64, events: &Events, viewer: &mut Viewer) -> bool {
        let waiting = events.queued();
        let taken = self.sent - waiting.min(self.sent);
        let new = taken - self.taken.min(taken);
        self.taken = taken;
        self.age = if waiting > 0 { self.age + passed } else { 0.0 };
        viewer.pass(passed, new, waiting > 0, self.age)
    }

    /// Sends a picture, or skips it if another is still waiting. Returns whether the viewer is connected.
    fn send(&mut self, picture: &Picture, rung: usize, events: &Events) -> bool {
        if events.queued() > 0 {
            self.left_out += 1;
            return true;
        }
        let header = PictureHeader {
            bytes: picture.jpeg.len(),
            seconds: picture.seconds,
            rung,
            left_out: self.left_out,
            source_size: picture.source_size,
        };
        let bytes = header.part(&picture.jpeg);
        self.sent += bytes.len();
        events.send(bytes).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abr::live::policy;

    #[test]
    fn viewers_are_counted_by_rung_and_leave() {
        let views = Arc::new(Views::default());
        assert!(views.viewed_rungs("a").is_empty());
        let mut one = ViewerRegistration::register(&views, "a").ok().unwrap();
        let two = ViewerRegistration::register(&views, "a").ok().unwrap();
        one.change(3);
        assert_eq!(views.viewed_rungs("a"), [0, 3]);
        let mut pictures = one.pictures().unwrap();
        let picture = |seconds| Picture { seconds, jpeg: vec![1, 2], source_size: None };
        views.add("a", 3, picture(1.0));
        views.add("a", 3, picture(2.0));
        views.add("b", 3, picture(2.0));
        assert_eq!(pictures.borrow_and_update().as_ref().unwrap().seconds, 2.0);
        drop(two);
        assert_eq!(views.viewed_rungs("a"), [3]);
        drop(one);
        assert!(views.lock().is_empty());
    }

    #[test]
    fn there_is_a_limit_of_viewers() {
        let views = Arc::new(Views::default());
        let registrations: Vec<ViewerRegistration> =
            (0..VIEWERS_MAX).map(|_| ViewerRegistration::register(&views, "a").ok().unwrap()).collect();
        assert!(matches!(ViewerRegistration::register(&views, "b"), Err(ViewRefused::TooManyViewers)));
        drop(registrations);
        assert!(ViewerRegistration::register(&views, "b").is_ok());
    }

    #[tokio::test]
    async fn a_view_ends_with_its_query() {
        let views = Arc::new(Views::default());
        let registration = ViewerRegistration::register(&views, "a").ok().unwrap();
        let (events, response) = events(CONTENT_TYPE);
        let fed = tokio::spawn(feed(registration, events, Viewer::new(policy())));
        views.add("a", 0, Picture { seconds: 1.0, jpeg: vec![0; 100], source_size: None });
        views.close("a");
        fed.await.unwrap();
        drop(response);
    }
}
