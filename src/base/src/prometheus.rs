//! Prometheus metrics: families of samples, written in the text format by `prometheus-client`.
//!
//! The crate's own metric types are not used: all values are computed when they are scraped.

use std::collections::BTreeMap;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

/// The media type of Prometheus's text format.
pub const MEDIA_TYPE: &str = prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// The suffix that the text format adds to the names of all counters.
const TOTAL: &str = "_total";

/// The type of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value that only grows until the process ends; the family's name ends in `_total`.
    Counter,
    /// A value that can grow and shrink.
    Gauge,
    /// Cumulative buckets, a sum and a count.
    Histogram,
}

#[derive(Debug)]
struct Family {
    kind: Kind,
    help: String,
    samples: Vec<(Labels, Value)>,
}

#[derive(Clone, Debug)]
struct Labels(Vec<(String, String)>);

#[derive(Debug)]
enum Value {
    Number(f64),
    /// A histogram: the upper bound of each bucket with the number of values in it, not cumulative, and the sum of the
    /// values.
    Buckets(Vec<(f64, u64)>, f64),
}

/// The families of a scrape, by name.
#[derive(Debug, Default)]
pub struct Text(BTreeMap<String, Family>);

impl Text {
    /// Adds a sample of a counter or a gauge. A counter's name ends in `_total`.
    pub fn add(&mut self, name: &str, kind: Kind, help: &str, labels: &[(&str, &str)], value: f64) {
        self.sample(name, kind, help, labels, Value::Number(value));
    }

    /// Adds a sample of a histogram: upper bounds, the number of values in each bucket, not cumulative, and the sum of
    /// the values. The last bucket is for values beyond all bounds.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        (bounds, buckets, sum): (&[f64], &[u64], f64),
    ) {
        let ends = bounds.iter().copied().chain([f64::INFINITY]);
        let buckets = ends.zip(buckets.iter().copied()).collect();
        self.sample(name, Kind::Histogram, help, labels, Value::Buckets(buckets, sum));
    }

    fn sample(&mut self, name: &str, kind: Kind, help: &str, labels: &[(&str, &str)], value: Value) {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let family = self.0.entry(name.to_owned()).or_insert_with(|| Family {
            kind,
            help: help.to_owned(),
            samples: Vec::new(),
        });
        family.samples.push((Labels(labels.collect()), value));
    }

    /// Returns all families in Prometheus's text format.
    #[must_use]
    pub fn write(self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::with_capacity(64 << 10));
        registry.register_collector(Box::new(self));
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::prometheus_text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Text {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, family) in &self.0 {
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let mut out = encoder.encode_descriptor(name.trim_end_matches(TOTAL), &family.help, None, kind)?;
            for (labels, value) in &family.samples {
                if labels.0.is_empty() {
                    value.encode(family.kind, &mut out)?;
                } else {
                    value.encode(family.kind, &mut out.encode_family(labels)?)?;
                }
            }
        }
        Ok(())
    }
}

impl Value {
    fn encode(&self, kind: Kind, out: &mut MetricEncoder<'_>) -> fmt::Result {
        match self {
            Value::Number(value) if kind == Kind::Counter => {
                out.encode_counter(value, None::<&Exemplar<NoLabelSet, f64>>)
            }
            Value::Number(value) => out.encode_gauge(value),
            Value::Buckets(buckets, sum) => {
                let count = buckets.iter().map(|(_, count)| count).sum();
                out.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
            }
        }
    }
}

impl EncodeLabelSet for Labels {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        self.0.as_slice().encode(encoder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_format() {
        let mut text = Text::default();
        text.histogram("h", "Time", &[("f", "a\"b\\c\nd")], (&[0.5, 1.0], &[1, 2, 3], 9.5));
        text.add("g", Kind::Gauge, "Level", &[], 0.25);
        text.add("c_total", Kind::Counter, "Calls", &[("f", "x"), ("g", "y")], 3.0);
        let labels = r#"f="a\"b\\c\nd""#;
        assert_eq!(
            text.write(),
            format!(
                "# HELP c_total Calls\n# TYPE c_total counter\nc_total{{f=\"x\",g=\"y\"}} 3.0\n# HELP g Level\n# TYPE g gauge\n\
                 g 0.25\n# HELP h Time\n# TYPE h histogram\nh_bucket{{{labels},le=\"0.5\"}} 1\nh_bucket{{{labels},le=\"1\"}} 3\n\
                 h_bucket{{{labels},le=\"+Inf\"}} 6\nh_sum{{{labels}}} 9.5\nh_count{{{labels}}} 6\n"
            )
        );
    }
}
