//! Query files: parses queries in TOML or JSON, and checks all of them before one is accepted. Errors have the line.
//!
//! It opens no video.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::media::Source;
use crate::pipeline::{Line, Point, QueryKind, Scope};
use crate::schedule::Goals;
use crate::vision::Detector;

/// Maximum number of queries of one file, and of one framework.
pub const QUERIES_MAX: usize = 1000;
/// Maximum length of a query's name, in bytes.
const NAME_MAX: usize = 64;

/// The specification of a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuerySpec {
    /// Name of the query: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Kind of the query.
    pub kind: QueryKind,
    /// Path of the video file on agents, or the camera.
    pub video: Source,
    /// Whether the file is repeated forever, as a live stream.
    #[serde(rename = "loop")]
    pub looped: bool,
    /// Length of the stream in seconds; `None` for the end of the file, or never.
    pub seconds: Option<f64>,
    /// Time for which a lost camera is reconnected, in seconds; with 0 the query ends when the camera does.
    #[serde(default = "hour")]
    pub reconnect: f64,
    /// Lines and region of the query.
    #[serde(default)]
    pub scope: Scope,
    /// Best detector that the query may use.
    #[serde(default = "colour")]
    pub detector: Detector,
    /// Path of the ONNX model on agents, for the detector `network`.
    #[serde(default)]
    pub model: Option<PathBuf>,
    /// Whether findings go to the alert hook.
    #[serde(default = "yes")]
    pub alert: bool,
    /// Path of the ground truth of a generated scene, to measure quality against.
    pub truth: Option<PathBuf>,
    /// Path of a profile; with `None` a stored one is used, or a new one made.
    pub profile: Option<PathBuf>,
    /// Goals for lag and quality.
    pub goals: Goals,
}

/// The error of an invalid query file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {rule}")]
pub struct SpecError {
    /// File and line, or the field.
    pub place: String,
    /// Rule that is broken.
    pub rule: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    query: Vec<Spanned<Raw>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Spanned<String>,
    kind: QueryKind,
    video: Spanned<String>,
    #[serde(default, rename = "loop")]
    looped: bool,
    seconds: Option<Spanned<f64>>,
    #[serde(default = "spanned_hour")]
    reconnect: Spanned<f64>,
    #[serde(default)]
    line: Vec<Line>,
    #[serde(default)]
    region: Vec<Point>,
    #[serde(default = "colour")]
    detector: Detector,
    model: Option<PathBuf>,
    #[serde(default = "yes")]
    alert: bool,
    truth: Option<PathBuf>,
    profile: Option<PathBuf>,
    #[serde(default = "half")]
    min_quality: Spanned<f64>,
    #[serde(default = "five")]
    max_lag: Spanned<f64>,
    #[serde(default = "one")]
    weight: Spanned<f64>,
    #[serde(default = "single")]
    copies: Spanned<u32>,
}

fn colour() -> Detector {
    Detector::Colour
}

fn yes() -> bool {
    true
}

fn hour() -> f64 {
    3600.0
}

fn spanned_hour() -> Spanned<f64> {
    Spanned::new(0..0, hour())
}

fn half() -> Spanned<f64> {
    Spanned::new(0..0, 0.5)
}

fn five() -> Spanned<f64> {
    Spanned::new(0..0, 5.0)
}

fn one() -> Spanned<f64> {
    Spanned::new(0..0, 1.0)
}

fn single() -> Spanned<u32> {
    Spanned::new(0..0, 1)
}

/// Parses queries from TOML. `file` is the name in errors; videos are relative to `directory`.
///
/// # Errors
/// Returns the first invalid field, with its line. No query is accepted then.
pub fn parse(text: &str, file: &str, directory: &Path) -> Result<Vec<QuerySpec>, SpecError> {
    let line = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    let bad = |at: usize, rule: String| SpecError { place: format!("{file}:{}", line(at)), rule };
    let parsed: File =
        toml::from_str(text).map_err(|e| bad(e.span().map_or(0, |s| s.start), e.message().to_owned()))?;
    let mut specs: Vec<QuerySpec> = Vec::new();
    for raw in parsed.query {
        let whole = raw.span().start;
        let raw = raw.into_inner();
        let at = |span: std::ops::Range<usize>| if span.end == 0 { whole } else { span.start };
        let copies = *raw.copies.get_ref();
        if !(1..=QUERIES_MAX as u32).contains(&copies) {
            return Err(bad(at(raw.copies.span()), format!("copies = {copies}: 1 to {QUERIES_MAX}")));
        }
        let name_at = at(raw.name.span());
        let video: Result<Source, _> = raw.video.get_ref().parse();
        let video = video.map_err(|error| bad(at(raw.video.span()), error.to_string()))?;
        let spec = QuerySpec {
            name: raw.name.get_ref().clone(),
            kind: raw.kind,
            video: video.within(directory),
            reconnect: *raw.reconnect.get_ref(),
            scope: Scope { lines: raw.line, region: raw.region },
            detector: raw.detector,
            model: raw.model.as_ref().map(|model| directory.join(model)),
            alert: raw.alert,
            looped: raw.looped,
            seconds: raw.seconds.as_ref().map(|s| *s.get_ref()),
            truth: raw.truth.as_ref().map(|t| directory.join(t)),
            profile: raw.profile.as_ref().map(|p| directory.join(p)),
            goals: Goals {
                min_quality: *raw.min_quality.get_ref(),
                max_lag: *raw.max_lag.get_ref(),
                quality_weight: *raw.weight.get_ref(),
                lag_weight: *raw.weight.get_ref(),
            },
        };
        spec.check().map_err(|(field, rule)| {
            let span = match field {
                "min_quality" => raw.min_quality.span(),
                "max_lag" => raw.max_lag.span(),
                "weight" => raw.weight.span(),
                "reconnect" => raw.reconnect.span(),
                "video" => raw.video.span(),
                "seconds" => raw.seconds.as_ref().map_or(0..0, Spanned::span),
                _ => raw.name.span(),
            };
            bad(at(span), rule)
        })?;
        for copy in 1..=copies {
            let name = if copies == 1 { spec.name.clone() } else { format!("{}-{copy}", spec.name) };
            if specs.iter().any(|s| s.name == name) {
                return Err(bad(name_at, format!("name = {name:?}: there is a query with this name already")));
            }
            let named = QuerySpec { name, ..spec.clone() };
            // The number may make the name too long.
            named.check().map_err(|(_, rule)| bad(name_at, rule))?;
            specs.push(named);
        }
        if specs.len() > QUERIES_MAX {
            return Err(bad(whole, format!("more than {QUERIES_MAX} queries")));
        }
    }
    if specs.is_empty() {
        return Err(SpecError { place: file.to_owned(), rule: "has no [[query]]".to_owned() });
    }
    Ok(specs)
}

impl QuerySpec {
    /// Checks whether the query is valid.
    ///
    /// # Errors
    /// Returns the field, and the rule that it breaks.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let Goals { min_quality, max_lag, quality_weight, .. } = self.goals;
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if self.name.is_empty()
            || self.name.len() > NAME_MAX
            || !self.name.chars().all(good)
            || self.name.starts_with('.')
        {
            let rule = "1 to 64 letters, digits, '-', '_' and '.', and no '.' in front";
            return Err(("name", format!("name = {:?}: {rule}", self.name)));
        }
        if !(0.0..=1.0).contains(&min_quality) {
            return Err(("min_quality", format!("min_quality = {min_quality}: 0 to 1")));
        }
        if !(0.0..=86_400.0).contains(&max_lag) {
            return Err(("max_lag", format!("max_lag = {max_lag}: 0 to 86400 seconds")));
        }
        if !(0.01..=100.0).contains(&quality_weight) {
            return Err(("weight", format!("weight = {quality_weight}: 0.01 to 100")));
        }
        if (self.detector == Detector::Network) != self.model.is_some() {
            return Err(("model", "detector = \"network\" and model = \"FILE.onnx\" belong together".to_owned()));
        }
        self.scope.check().map_err(|error| ("line", error.to_string()))?;
        if !(0.0..=1e9).contains(&self.reconnect) {
            return Err(("reconnect", format!("reconnect = {}: 0 to 1e9 seconds", self.reconnect)));
        }
        if self.looped && self.video.camera().is_some() {
            return Err(("video", format!("loop = true: {} is live, only a file can be repeated", self.video)));
        }
        if self.seconds.is_some_and(|s| !(s > 0.0 && s <= 1e9)) {
            return Err(("seconds", "seconds: above 0, and at most 1e9".to_owned()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[query]]\nname = \"gate\"\nkind = \"cars\"\nvideo = \"a.mp4\"\n";

    #[test]
    fn a_network_and_its_model_belong_together() {
        let with = |lines: &str| parse(&format!("{GOOD}{lines}"), "q.toml", Path::new("/v"));
        let specs = with("detector = \"network\"\nmodel = \"people.onnx\"\n").expect("good");
        assert_eq!(specs[0].model.as_deref(), Some(Path::new("/v/people.onnx")));
        for lines in ["detector = \"network\"\n", "model = \"people.onnx\"\n"] {
            assert!(with(lines).expect_err(lines).rule.contains("belong together"), "{lines}");
        }
    }

    #[test]
    fn a_short_query_and_its_defaults() {
        let specs = parse(GOOD, "q.toml", Path::new("/v")).expect("good");
        assert_eq!(specs[0].video, Source::File("/v/a.mp4".into()));
        assert_eq!((specs[0].goals, specs[0].looped), (Goals::default(), false));
        let copies = parse(&format!("{GOOD}copies = 3\n"), "q.toml", Path::new(".")).expect("good");
        assert_eq!(copies.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["gate-1", "gate-2", "gate-3"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (more, line, says) in [
            ("min_quality = 2\n", 5, "0 to 1"),
            ("max_lag = -1\n", 5, "seconds"),
            ("max_lag = \"soon\"\n", 5, "f64"),
            ("speed = 3\n", 5, "unknown field"),
            ("weight = nan\n", 5, "0.01 to 100"),
            ("copies = 0\n", 5, "1 to 1000"),
            ("[[query]]\nname = \"gate\"\nkind = \"people\"\nvideo = \"b\"\n", 6, "already"),
            ("[[query]]\nname = \"x y\"\nkind = \"people\"\nvideo = \"b\"\n", 6, "letters"),
            ("[[query]]\nname = \"x\"\nkind = \"birds\"\nvideo = \"b\"\n", 7, "unknown variant"),
            ("[[query]]\nname = \"x\"\nkind = \"people\"\nvideo = \"file:/etc/passwd\"\n", 8, "'file' is not accepted"),
            ("reconnect = -1\n", 5, "0 to 1e9"),
            ("[[query]]\nname = \"x\"\nkind = \"people\"\nvideo = \"rtsp://u:secret@h\"\nloop = true\n", 8, "***@h"),
            ("[[query]]\nname = \"x\"\nkind = \"people\"\n", 5, "missing field"),
        ] {
            let error = parse(&format!("{GOOD}{more}"), "q.toml", Path::new(".")).expect_err(more);
            assert_eq!(error.place, format!("q.toml:{line}"), "{error}");
            assert!(error.rule.contains(says), "{error}");
        }
        let long = GOOD.replace("gate", &"x".repeat(NAME_MAX));
        assert!(parse(&long, "q.toml", Path::new(".")).is_ok());
        let error = parse(&format!("{long}copies = 2\n"), "q.toml", Path::new(".")).expect_err("a long name");
        assert!(error.place == "q.toml:2" && error.rule.contains("1 to 64 letters"), "{error}");
        assert!(parse("", "q.toml", Path::new(".")).expect_err("empty").rule.contains("[[query]]"));
    }
}
