//! Replays a recorded master: passes the same inputs at the same times to the same core.
//!
//! With the recorded settings every batch must have the recorded outcome. With other policies a second core runs beside
//! it, and the results are compared. The replay reads no clock.
//!
//! A recorded call names offers by their ids at that time. The second master receives the ids of the offers that the
//! same framework holds of the same agents there. A call without such an offer is skipped and counted.

use std::collections::BTreeMap;
use std::io::{self, Read};

use allocator::policies::Policies;
use base::Time;
use cores::Core;
use master::record::{Batch, FRAME_MAX, Head, MAGIC, ParsePolicies, RecordDecoder, RecordError, result_hash};
use master::{Config, Input, Master, Message, Outbox};
use protos::mesos::OfferId;
use protos::mesos::scheduler::Call;
use serde::Serialize;

mod decisions;
mod differences;

pub use decisions::DecisionKind;
use differences::Finder;
pub use differences::{By, Differences, DifferingDecision, OneSided};

/// Reasons why a recording cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording cannot be read.
    #[error("the recording cannot be read")]
    Read(#[from] io::Error),
    /// The file is not a recording.
    #[error("this is not a recording of `tepui master --record`")]
    Foreign,
    /// A frame of the recording is damaged.
    #[error("frame {frame} of the recording is damaged")]
    Damaged {
        /// Number of the frame, from 0; the first is the head.
        frame: u64,
        /// Error of the frame's reader.
        #[source]
        why: RecordError,
    },
    /// The recorded flags are not valid settings of a master.
    #[error("the recorded master's settings cannot be read")]
    Settings(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What one of the masters did for a framework.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FrameworkTotals {
    /// Number of offers that the framework received.
    pub offers: u64,
    /// Number of offers that the framework accepted.
    pub accepted: u64,
    /// Number of offers that the framework declined.
    pub declined: u64,
    /// Number of offers that were rescinded.
    pub rescinded: u64,
    /// Mean dominant share of the framework, offers included, from its first resources to its end or that of the
    /// recording.
    pub share: f64,
    /// Mean fair share of the framework over the master's samples.
    pub target: f64,
    /// Total time for which the framework waited for offers, in seconds.
    pub waited: f64,
}

/// The result of a replay.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Replay {
    /// Number of batches in the recording.
    pub batches: u64,
    /// Number of inputs in all batches.
    pub inputs: u64,
    /// Duration of the recording, in seconds.
    pub seconds: f64,
    /// First batch whose outcome differs from the recorded one, with its time in seconds; `None` if all are equal.
    pub differs: Option<(u64, f64)>,
    /// Number of batches whose outcome differs from the recorded one.
    pub different: u64,
    /// Whether the recording ends within a frame, as that of a master that was killed does.
    pub cut: bool,
    /// What the recorded master did for each framework, and what the second one did if there are other policies.
    pub frameworks: BTreeMap<String, (FrameworkTotals, Option<FrameworkTotals>)>,
    /// Number of calls that the second master did not receive, because it had made none of their offers.
    pub dropped: u64,
    /// Why the outcomes of both masters differ; `None` without other policies.
    pub differences: Option<Differences>,
}

/// A function that builds a master's settings from its flags, by names and values, or returns the reason why it cannot.
pub type Settings = dyn Fn(&[(String, String)]) -> Result<Config, Box<dyn std::error::Error + Send + Sync>>;

/// Replays a recording.
///
/// `config` builds the settings from flags, `policies` parses the text form in which policies were recorded. With
/// `other` policies a second master runs beside the first.
///
/// # Errors
/// Returns an error if the recording cannot be read or is not valid.
pub fn replay(
    recording: &mut dyn Read,
    config: &Settings,
    policies: &ParsePolicies,
    other: Option<Policies>,
) -> Result<Replay, ReplayError> {
    let mut magic = [0; MAGIC.len()];
    recording.read_exact(&mut magic).map_err(|_| ReplayError::Foreign)?;
    if magic != *MAGIC {
        return Err(ReplayError::Foreign);
    }
    let damaged = |frame| move |why| ReplayError::Damaged { frame, why };
    let Some(head) = frame(recording)? else { return Err(ReplayError::Foreign) };
    let head = Head::read(&head).map_err(damaged(0))?;
    let config = config(&head.flags).map_err(ReplayError::Settings)?;
    let begin = |config| Master::new(config, head.info.clone(), &head.registry, head.seed, head.start);
    let second = |policies: Policies| {
        let finder = Finder::new(&config.policies, &policies);
        OtherMaster::new(begin(Config { policies, ..config.clone() }), finder)
    };
    let mut second = other.map(second);
    let mut first = begin(config.clone());
    let (mut player, mut out) = (RecordDecoder::default(), Outbox::default());
    let mut replay = Replay::default();
    loop {
        let bytes = match frame(recording) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break,
            Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => {
                replay.cut = true;
                break;
            }
            Err(why) => return Err(why.into()),
        };
        let batch: Batch = player.batch(&bytes, policies).map_err(damaged(replay.batches + 1))?;
        replay.batches += 1;
        replay.inputs += batch.inputs.len() as u64;
        replay.seconds = batch.at.since(head.start).as_secs_f64();
        if let Some(second) = &mut second {
            second.batch(&batch, &first);
        }
        out.clear();
        batch.inputs.into_iter().for_each(|input| first.handle(input, batch.at, &mut out));
        first.end_batch(batch.at, &mut out);
        if let Some(second) = &mut second {
            second.compare((replay.batches - 1, batch.at, replay.seconds), (&first, &out));
        }
        if result_hash(&out) != batch.result_hash {
            replay.different += 1;
            replay.differs.get_or_insert((replay.batches - 1, replay.seconds));
        }
    }
    collect_totals(&mut first, |name, totals| replay.frameworks.entry(name).or_default().0 = totals);
    if let Some(mut second) = second {
        replay.dropped = second.dropped;
        collect_totals(&mut second.core, |name, totals| replay.frameworks.entry(name).or_default().1 = Some(totals));
        replay.differences = Some(second.finder.end(&names(&mut first)));
    }
    Ok(replay)
}

/// Reads the next frame; returns `None` at the end.
fn frame(recording: &mut dyn Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    if recording.read(&mut length[..1])? == 0 {
        return Ok(None);
    }
    recording.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
    }
    let mut bytes = Vec::new();
    recording.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

/// Passes a master's totals by framework to `put`.
fn collect_totals(core: &mut Master, mut put: impl FnMut(String, FrameworkTotals)) {
    let (snapshot, fairness) = (core.snapshot(), core.fairness());
    for framework in snapshot.frameworks.values().chain(snapshot.completed.values()) {
        let counts = &framework.counts;
        let mut totals = FrameworkTotals {
            offers: counts.offers_sent,
            accepted: counts.offers_accepted,
            declined: counts.offers_declined,
            rescinded: counts.offers_rescinded,
            ..FrameworkTotals::default()
        };
        for client in fairness.clients.iter().filter(|client| client.framework == framework.id) {
            let seconds = client.sampled.seconds.max(1e-9);
            totals.share += client.sampled.share / seconds;
            totals.target += client.sampled.target / seconds;
            totals.waited += client.waiting.total.as_secs_f64();
        }
        if let Some((sampled, waited)) = &counts.over_time {
            let seconds = sampled.seconds.max(1e-9);
            (totals.share, totals.target) = (sampled.share / seconds, sampled.target / seconds);
            totals.waited = waited.as_secs_f64();
        }
        put(format!("{} ({})", framework.info.name, framework.id), totals);
    }
}

/// Returns the names of frameworks by their ids, with the id added if several have the same name.
fn names(core: &mut Master) -> BTreeMap<String, String> {
    let snapshot = core.snapshot();
    let frameworks = || snapshot.frameworks.values().chain(snapshot.completed.values());
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    frameworks().for_each(|framework| *count.entry(&framework.info.name).or_default() += 1);
    let name = |framework: &std::sync::Arc<master::Framework>| {
        let (id, name) = (framework.id.to_string(), framework.info.name.to_string());
        let shown = if count[name.as_str()] > 1 { format!("{name} ({id})") } else { name };
        (id, shown)
    };
    frameworks().map(name).collect()
}

/// The second master, which runs with other policies.
struct OtherMaster {
    core: Master,
    out: Outbox,
    dropped: u64,
    finder: Finder,
}

impl OtherMaster {
    fn new(core: Master, finder: Finder) -> OtherMaster {
        OtherMaster { core, out: Outbox::default(), dropped: 0, finder }
    }

    /// Compares the outcomes of the same batch in both masters.
    fn compare(&mut self, batch: (u64, Time, f64), first: (&Master, &Outbox)) {
        self.finder.batch(batch, [first, (&self.core, &self.out)]);
    }

    /// Handles a batch. This happens before the first master handles it, while that still has the offers that the batch
    /// names.
    fn batch(&mut self, batch: &Batch, first: &Master) {
        self.out.clear();
        for input in &batch.inputs {
            if let Some(input) = self.translated(input, first) {
                self.core.handle(input, batch.at, &mut self.out);
            }
        }
        self.core.end_batch(batch.at, &mut self.out);
    }

    /// Returns an input with the second master's offers in place of the recorded ones; `None` if it does not apply
    /// here.
    fn translated(&mut self, input: &Input, first: &Master) -> Option<Input> {
        let mut input = input.clone();
        let call = match &mut input {
            // The second master keeps the policies that it was started with.
            Input::UpdatePolicies { .. } => return None,
            Input::SchedulerCall { call, .. } | Input::Message { message: Message::Call(call), .. } => call,
            _ => return Some(input),
        };
        let Some(ids) = offers_in(call) else { return Some(input) };
        let before = std::mem::take(ids);
        *ids = before.iter().filter_map(|id| self.same_offer(id, first)).collect();
        ids.dedup();
        if ids.is_empty() && !before.is_empty() {
            self.dropped += 1;
            if let Some((framework, agent, role)) = before.iter().find_map(|id| first.offer_owner(&id.value)) {
                let offer = (framework.as_str(), agent, role.as_str());
                self.finder.dropped(call, offer, &self.core);
            }
            return None;
        }
        Some(input)
    }

    /// Returns the second master's offer of the same agent to the same framework, in the same role.
    fn same_offer(&self, id: &OfferId, first: &Master) -> Option<OfferId> {
        let (framework, agent, role) = first.offer_owner(&id.value)?;
        self.core.find_equal_offer(framework, agent, role).map(|value| OfferId { value: value.into() })
    }
}

/// Returns the ids of the offers that a call answers.
fn offers_in(call: &mut Call) -> Option<&mut Vec<OfferId>> {
    match call {
        Call { accept: Some(accept), .. } => Some(&mut accept.offer_ids),
        Call { decline: Some(decline), .. } => Some(&mut decline.offer_ids),
        _ => None,
    }
}
