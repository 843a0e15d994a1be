//! The text format of Prometheus (exposition format 0.0.4): families of samples with labels, escaped.
//!
//! It measures nothing. Mesos has no such format; names are Mesos's with `_` for `/`, and what is a name in Mesos's flat list
//! (a framework, a role) is a label here.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The media type of the text.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a family's values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets, a sum and a count.
    Histogram,
    /// Not said.
    Untyped,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    help: &'static str,
    /// What follows the name, and the value.
    samples: Vec<(String, f64)>,
}

/// All families, by name.
#[derive(Debug, Default)]
pub struct Text(BTreeMap<String, Family>);

impl Text {
    /// Adds a sample.
    pub fn add(&mut self, name: &str, kind: Kind, help: &'static str, labels: &[(&str, &str)], value: f64) {
        self.sample(name, kind, help, (labelled("", labels), value));
    }

    /// Adds a histogram: bounds with the number of values in each bucket alone, the last one beyond all bounds.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &'static str,
        labels: &[(&str, &str)],
        (bounds, buckets, sum): (&[f64], &[u64], f64),
    ) {
        let mut below = 0;
        let ends = bounds.iter().copied().chain([f64::INFINITY]);
        for (bound, count) in ends.zip(buckets) {
            below += count;
            let bound = number(bound);
            let mut labels = labels.to_vec();
            labels.push(("le", &bound));
            self.sample(name, Kind::Histogram, help, (labelled("_bucket", &labels), below as f64));
        }
        self.sample(name, Kind::Histogram, help, (labelled("_sum", labels), sum));
        self.sample(name, Kind::Histogram, help, (labelled("_count", labels), below as f64));
    }

    /// Adds one of Mesos's metrics under its flat name.
    pub fn flat(&mut self, flat: &str, value: f64) {
        let (name, labels) = translate(flat);
        let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (*key, value.as_str())).collect();
        self.add(&name, Kind::Untyped, "", &labels, value);
    }

    fn sample(&mut self, name: &str, kind: Kind, help: &'static str, sample: (String, f64)) {
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family { kind, help, samples: Vec::new() });
        family.samples.push(sample);
    }

    /// The whole text.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = String::with_capacity(64 << 10);
        for (name, family) in &self.0 {
            if !family.help.is_empty() {
                let _ = writeln!(text, "# HELP {name} {}", family.help.replace('\\', "\\\\").replace('\n', "\\n"));
            }
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
                Kind::Untyped => "untyped",
            };
            let _ = writeln!(text, "# TYPE {name} {kind}");
            for (rest, value) in &family.samples {
                let _ = writeln!(text, "{name}{rest} {}", number(*value));
            }
        }
        text
    }
}

fn number(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    value.to_string()
}

/// A suffix of the name, and the labels.
fn labelled(suffix: &str, labels: &[(&str, &str)]) -> String {
    let mut text = suffix.to_owned();
    for (at, (key, value)) in labels.iter().enumerate() {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(text, "{}{key}=\"{value}\"", if at == 0 { '{' } else { ',' });
    }
    if !labels.is_empty() {
        text.push('}');
    }
    text
}

/// A flat name as a name with labels.
fn translate(flat: &str) -> (String, Vec<(&'static str, String)>) {
    if let Some(rest) = flat.strip_prefix("master/frameworks/") {
        let mut parts = rest.splitn(3, '/');
        if let (Some(name), Some(id), Some(what)) = (parts.next(), parts.next(), parts.next()) {
            let mut labels = vec![("framework", decoded(name)), ("framework_id", id.to_owned())];
            let what = take_role(what, "roles/", &mut labels).unwrap_or_else(|| what.to_owned());
            return (valid(&format!("master_framework_{what}")), labels);
        }
    }
    for (prefix, name) in [
        ("allocator/mesos/roles/", "allocator_mesos_role"),
        ("allocator/mesos/offer_filters/roles/", "allocator_mesos_offer_filters_role"),
        ("allocator/mesos/quota/roles/", "allocator_mesos_quota_role"),
    ] {
        let mut labels = Vec::new();
        if let Some(what) = take_role(flat, prefix, &mut labels) {
            return (valid(&format!("{name}_{what}")), labels);
        }
    }
    if let Some((principal, what)) = flat.strip_prefix("frameworks/").and_then(|rest| rest.rsplit_once('/')) {
        return (valid(&format!("frameworks_{what}")), vec![("principal", principal.to_owned())]);
    }
    (valid(flat), Vec::new())
}

/// What follows a role, which may itself have slashes: the last part, or from `shares/`, `resources/` on.
fn take_role(name: &str, prefix: &str, labels: &mut Vec<(&'static str, String)>) -> Option<String> {
    let rest = name.strip_prefix(prefix)?;
    let cut = ["/shares/", "/resources/"].iter().find_map(|word| rest.rfind(word)).or_else(|| rest.rfind('/'))?;
    labels.push(("role", rest[..cut].to_owned()));
    let what = &rest[cut + 1..];
    if let Some((resource, what)) = what.strip_prefix("resources/").and_then(|what| what.rsplit_once('/')) {
        labels.push(("resource", resource.to_owned()));
        return Some(what.to_owned());
    }
    Some(what.to_owned())
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// `tepui_` and the name with only letters, digits and `_`.
fn valid(name: &str) -> String {
    let kept = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    std::iter::once("tepui_").map(str::to_owned).chain(kept.map(String::from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_labels() {
        for (flat, wanted) in [
            ("master/tasks_running", "tepui_master_tasks_running 1\n"),
            (
                "master/frameworks/my%20app/id-1/offers/sent",
                "tepui_master_framework_offers_sent{framework=\"my app\",framework_id=\"id-1\"} 1\n",
            ),
            (
                "master/frameworks/x/id-1/roles/a/b/suppressed",
                "tepui_master_framework_suppressed{framework=\"x\",framework_id=\"id-1\",role=\"a/b\"} 1\n",
            ),
            (
                "allocator/mesos/roles/a/b/shares/dominant",
                "tepui_allocator_mesos_role_shares_dominant{role=\"a/b\"} 1\n",
            ),
            (
                "allocator/mesos/quota/roles/a/resources/cpus/limit",
                "tepui_allocator_mesos_quota_role_limit{role=\"a\",resource=\"cpus\"} 1\n",
            ),
            ("frameworks/me/messages_received", "tepui_frameworks_messages_received{principal=\"me\"} 1\n"),
        ] {
            let mut text = Text::default();
            text.flat(flat, 1.0);
            let written = text.write();
            assert!(written.ends_with(wanted), "{flat}: {written}");
        }
    }

    #[test]
    fn the_whole_format() {
        let mut text = Text::default();
        text.histogram("h", "How long.", &[("f", "a\"b\\c\nd")], (&[0.5, 1.0], &[1, 2, 3], 9.5));
        text.add("g", Kind::Gauge, "", &[], 0.25);
        let labels = r#"f="a\"b\\c\nd""#;
        assert_eq!(
            text.write(),
            format!(
                "# TYPE g gauge\ng 0.25\n# HELP h How long.\n# TYPE h histogram\nh_bucket{{{labels},le=\"0.5\"}} 1\n\
                 h_bucket{{{labels},le=\"1\"}} 3\nh_bucket{{{labels},le=\"+Inf\"}} 6\nh_sum{{{labels}}} 9.5\nh_count{{{labels}}} 6\n"
            )
        );
    }
}
