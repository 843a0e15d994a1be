//! A set of metrics by name, as `/metrics/snapshot` and GET_METRICS tell them.
//!
//! It measures nothing; each daemon fills it from what its core has counted.

use std::collections::BTreeMap;
use std::future::Future;

use protos::json::Writer;
use protos::mesos;
use resources::{Name, Resources};
use wire::http::{Request, Response};

use crate::host;

/// Metrics by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Sets one.
    pub fn set(&mut self, name: impl Into<String>, value: f64) {
        self.0.insert(name.into(), value);
    }

    /// One metric's value.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Sets a count.
    pub fn count(&mut self, name: impl Into<String>, value: usize) {
        self.set(name, value as f64);
    }

    /// `<prefix><resource>_total`, `_used`, `_percent`, and the same for revocable ones, for the four common resources.
    pub fn resources(&mut self, prefix: &str, total: &Resources, used: &Resources) {
        let parts =
            [("", total.non_revocable(), used.non_revocable()), ("_revocable", total.revocable(), used.revocable())];
        for (infix, total, used) in parts {
            for name in [Name::Cpus, Name::Gpus, Name::Mem, Name::Disk] {
                let amount = |of: &Resources| of.get_scalar(&name).map_or(0.0, |amount| amount.to_f64());
                let (total, used) = (amount(&total), amount(&used));
                let label = format!("{prefix}{}{infix}", name.as_str());
                self.set(format!("{label}_total"), total);
                self.set(format!("{label}_used"), used);
                self.set(format!("{label}_percent"), if total > 0.0 { used / total } else { 0.0 });
            }
        }
    }

    /// The machine's load and memory.
    pub fn system(&mut self) {
        let (load, memory) = (host::load(), host::memory());
        self.set("system/cpus_total", host::processors() as f64);
        for (name, value) in ["system/load_1min", "system/load_5min", "system/load_15min"].iter().zip(load) {
            self.set(*name, value);
        }
        self.set("system/mem_total_bytes", memory.total as f64);
        self.set("system/mem_free_bytes", memory.free as f64);
    }

    /// One flat object, sorted by name.
    pub fn json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 << 10);
        Writer::new(&mut out).object(|w| {
            for (name, value) in &self.0 {
                w.key(name).double(*value);
            }
        });
        out
    }

    /// The same as messages.
    pub fn messages(&self) -> Vec<mesos::Metric> {
        self.0.iter().map(|(name, value)| mesos::Metric { name: name.clone(), value: Some(*value) }).collect()
    }
}

/// Answers `/metrics/snapshot?timeout=`. Nothing here takes time, so a good timeout changes nothing.
pub async fn answer(request: &Request, collect: impl Future<Output = Metrics>) -> Response {
    if let Some(text) = request.query.get("timeout")
        && let Err(error) = base::parse_duration(text)
    {
        return Response::bad_request(format!("Invalid timeout '{text}': {error}."));
    }
    Response::ok_jsonp(collect.await.json(), request.query.get("jsonp"))
}
