//! Profiles of queries: found or made when queries are submitted, and made again when samples of a stream disagree.
//!
//! A profile that the user gave as a file is not replaced; that it does not fit is logged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{Error, Inner};
use crate::clock;
use crate::core::{Answer, QueryStatus, Question, State, Submission};
use crate::media::Source;
use crate::pipeline::{Knobs, QueryKind, Scope};
use crate::profile::{ClipOptions, EVENTS_FEW, Profile, ProfileError};
use crate::spec::QuerySpec;
use crate::vision::Detector;

/// Interval at which queries are checked.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Least time between two profiles of one query, in seconds.
const APART: f64 = 600.0;

/// Properties of queries that share a profile.
type ProfileKey = (Source, QueryKind, Scope, Detector, Option<PathBuf>);

/// Makes new profiles for queries whose profiles no longer fit, one at a time, until the service ends.
pub(super) async fn watch(inner: Arc<Inner>) {
    let mut last: BTreeMap<String, f64> = BTreeMap::new();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Ok(status) = inner.status().await else { return };
        let now = clock::monotonic();
        last.retain(|name, _| status.queries.iter().any(|query| query.name == *name));
        let drifted = |query: &&QueryStatus| {
            let early = last.get(&query.name).is_some_and(|at| now - at < APART);
            query.state == State::Running && query.sampled.is_some_and(|s| s.drifted) && !early
        };
        let Some(query) = status.queries.iter().find(drifted) else { continue };
        last.insert(query.name.clone(), now);
        if let Err(error) = inner.profile_again(query).await {
            tracing::warn!(query = %query.name, error = &error as &dyn std::error::Error, "The profile is unchanged");
        }
    }
}

/// Makes a profile on a separate thread.
async fn profiled(
    spec: &QuerySpec,
    make: impl FnOnce() -> Result<Profile, ProfileError> + Send + 'static,
) -> Result<Profile, Error> {
    let query = spec.name.clone();
    match tokio::task::spawn_blocking(make).await {
        Ok(made) => made.map_err(|source| Error::Profile { query, source }),
        Err(panic) => Err(Error::Refused(format!("query {query:?}: the profiler panicked: {panic}"))),
    }
}

impl Inner {
    /// Finds or makes the profile of each query. Queries of one kind on one video share it.
    pub(super) async fn prepare(&self, queries: Vec<QuerySpec>) -> Result<Vec<Submission>, Error> {
        let mut done: Vec<(ProfileKey, Profile)> = Vec::new();
        let mut out = Vec::new();
        for spec in queries {
            let bad = |(_, rule)| Error::Refused(format!("query {:?}: {rule}", spec.name));
            spec.check().map_err(bad)?;
            let key = (spec.video.clone(), spec.kind, spec.scope.clone(), spec.detector, spec.model.clone());
            let known = done.iter().find(|(other, _)| *other == key).map(|(_, profile)| profile);
            let profile = match (&spec.profile, known) {
                (None, Some(profile)) => profile.clone(),
                (given, _) => self.profile(&spec, given.as_deref()).await?,
            };
            if profile.events < EVENTS_FEW {
                let (query, events, seconds) = (&spec.name, profile.events, profile.seconds);
                tracing::warn!(%query, events, seconds, "The golden configuration found few objects");
            }
            let (points, golden) = (profile.frontier.clone(), profile.golden);
            if spec.profile.is_none() {
                done.push((key, profile));
            }
            out.push(Submission { spec, points, golden });
        }
        Ok(out)
    }

    /// Reads the profile that a query names, or finds or makes one.
    async fn profile(&self, spec: &QuerySpec, given: Option<&Path>) -> Result<Profile, Error> {
        let (video, kind, knobs, clip) = self.profiling(spec);
        let given = given.map(Path::to_owned);
        let directory = self.profiles.clone();
        profiled(spec, move || match given {
            Some(path) => Profile::read(&path),
            None => match &video {
                Source::File(path) => {
                    Profile::load_or_make(&directory, path, kind, &knobs, clip).map(|(profile, _)| profile)
                }
                Source::Camera(camera) => Profile::of_camera(&directory, camera, kind, &knobs, clip),
            },
        })
        .await
    }

    /// Makes a query's profile at a position of its stream, or from a camera's present pictures.
    async fn make_profile(&self, spec: &QuerySpec, from: f64) -> Result<Profile, Error> {
        let (video, kind, knobs, clip) = self.profiling(spec);
        let directory = self.profiles.clone();
        profiled(spec, move || match &video {
            Source::File(path) => Profile::make(path, kind, &knobs, ClipOptions { from, ..clip }),
            Source::Camera(camera) => Profile::of_camera(&directory, camera, kind, &knobs, clip),
        })
        .await
    }

    /// Returns the source, kind, knobs and options with which a query's profile is made.
    fn profiling(&self, spec: &QuerySpec) -> (Source, QueryKind, Knobs, ClipOptions) {
        let knobs = self.knobs.clone().with_detector(spec.detector);
        let (scope, model) = (spec.scope.clone(), spec.model.clone());
        let clip = ClipOptions { seconds: self.profile_seconds, scope, model, ..Default::default() };
        (spec.video.clone(), spec.kind, knobs, clip)
    }

    async fn profile_again(&self, query: &QueryStatus) -> Result<(), Error> {
        let Some(sampled) = query.sampled else { return Ok(()) };
        let (name, promised, quality) = (&query.name, sampled.promised, sampled.quality.unwrap_or_default());
        let Some(spec) = self.results.spec(name) else { return Ok(()) };
        if spec.profile.is_some() {
            tracing::warn!(query = %name, promised, quality, "The given profile does not fit the stream");
            return Ok(());
        }
        tracing::info!(query = %name, promised, quality, "The stream has changed: its profile is computed again");
        let profile = self.make_profile(&spec, query.position).await?;
        match self.requester.ask(Question::Profile { query: name.clone(), points: profile.frontier }).await? {
            Answer::Refused(why) => Err(Error::Refused(why)),
            Answer::NoQuery(name) => Err(Error::NoQuery(name)),
            _ => Ok(()),
        }
    }
}
