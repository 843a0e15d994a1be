//! The text format of Prometheus (exposition format 0.0.4): families of samples with labels, escaped.
//!
//! It measures nothing, and names nothing.

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
    /// Unknown.
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

#[cfg(test)]
mod tests {
    use super::*;

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
