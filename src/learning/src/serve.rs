//! Answers requests of learners, one after the other, over any reader and writer. It opens neither pipes nor files.

use std::io::{self, ErrorKind, Read, Write};

use crate::batch::{Batch, BatchResults};
use crate::files::Files;
use crate::kinds::EnvironmentFactory;
use crate::wire::{Open, Request, VERSION, answer, read_frame, write_frame};
use crate::{LearningError, Rollout};

/// Maximum number of open batches.
const MOST_BATCHES: usize = 64;

/// The open batches, by handle.
#[derive(Default)]
struct OpenBatches {
    batches: Vec<Option<Batch>>,
    greeted: bool,
}

/// An answer: its kind and the pieces of its body.
enum Answer {
    Bytes(u8, Vec<u8>),
    Parts(Vec<BatchResults>),
}

/// Answers requests until the input ends.
///
/// # Errors
/// Returns the system's error, or an error for a frame with an invalid length, after which the input cannot be parsed.
pub fn serve(input: &mut dyn Read, output: &mut dyn Write, files: &dyn Files) -> io::Result<()> {
    let (mut open, mut body) = (OpenBatches::default(), Vec::new());
    loop {
        let kind = match read_frame(input, &mut body) {
            Ok(Some(kind)) => kind,
            Ok(None) => return Ok(()),
            Err(why) => {
                if why.kind() == ErrorKind::InvalidData {
                    write_frame(output, answer::ERROR, &[why.to_string().as_bytes()])?;
                }
                return Err(why);
            }
        };
        match Request::read(kind, &body).and_then(|request| open.carry_out(request, files)) {
            Ok(Answer::Bytes(kind, bytes)) => write_frame(output, kind, &[&bytes])?,
            Ok(Answer::Parts(parts)) => write_parts(output, &parts)?,
            Err(why) => write_frame(output, answer::ERROR, &[why.chain().as_bytes()])?,
        }
    }
}

impl OpenBatches {
    fn carry_out(&mut self, request: Request<'_>, files: &dyn Files) -> Result<Answer, LearningError> {
        if !self.greeted && request != Request::Hello {
            return Err(LearningError::frame("kind", "must be hello in the first frame"));
        }
        match request {
            Request::Hello => {
                self.greeted = true;
                Ok(Answer::Bytes(answer::HELLO, VERSION.to_le_bytes().into()))
            }
            Request::Open(open) => self.open(open, files),
            Request::Reset(handle, begin) => self.batch(handle)?.reset(&begin).map(Answer::Parts),
            Request::Step(handle, actions) => self.batch(handle)?.step(actions).map(Answer::Parts),
            Request::Baseline(handle, baseline) => {
                let rollouts = self.batch(handle)?.baseline(&baseline.policy, &baseline.seeds)?;
                let numbers = |rollout: &Rollout| [&[rollout.total][..], &rollout.info].concat();
                let bytes = rollouts.iter().flat_map(numbers).flat_map(f64::to_le_bytes).collect();
                Ok(Answer::Bytes(answer::ROLLOUTS, bytes))
            }
            Request::Close(handle) => {
                self.batch(handle)?;
                self.batches[handle as usize] = None;
                Ok(Answer::Bytes(answer::CLOSED, Vec::new()))
            }
        }
    }

    fn open(&mut self, open: Open, files: &dyn Files) -> Result<Answer, LearningError> {
        let free = self.batches.iter().position(Option::is_none).unwrap_or(self.batches.len());
        if free == MOST_BATCHES {
            return Err(LearningError::frame("open", format!("must leave {MOST_BATCHES} or fewer batches open")));
        }
        let factory = EnvironmentFactory::new(&open.name, open.settings, files)?;
        let policies = factory.make()?.policies();
        let batch = Batch::new(&factory, open.count, open.threads, open.autoreset)?;
        let mut spaces = serde_json::to_value(batch.spaces()).unwrap_or_default();
        spaces["policies"] = policies.into();
        // JSON has no infinite numbers.
        let bound = |value: f64| value.is_finite().then_some(value);
        spaces["reward"] = serde_json::json!([bound(batch.spaces().reward.0), bound(batch.spaces().reward.1)]);
        let mut bytes = (free as u32).to_le_bytes().to_vec();
        bytes.extend(spaces.to_string().into_bytes());
        match self.batches.get_mut(free) {
            Some(place) => *place = Some(batch),
            None => self.batches.push(Some(batch)),
        }
        Ok(Answer::Bytes(answer::OPENED, bytes))
    }

    fn batch(&mut self, handle: u32) -> Result<&mut Batch, LearningError> {
        let batch = self.batches.get_mut(handle as usize).and_then(Option::as_mut);
        batch.ok_or_else(|| LearningError::frame("handle", format!("{handle} must be open")))
    }
}

/// Writes the results of a batch, whose parts are in order.
fn write_parts(output: &mut dyn Write, parts: &[BatchResults]) -> io::Result<()> {
    let floats = |of: &dyn Fn(&BatchResults) -> &[f64]| -> Vec<u8> {
        parts.iter().flat_map(|part| of(part).iter().flat_map(|value| value.to_le_bytes())).collect()
    };
    let bytes = |of: &dyn Fn(&BatchResults) -> &[bool]| -> Vec<u8> {
        parts.iter().flat_map(|part| of(part).iter().map(|value| u8::from(*value))).collect()
    };
    let seeds: Vec<u8> = parts.iter().flat_map(|part| part.seeds.iter().flat_map(|seed| seed.to_le_bytes())).collect();
    let long = [floats(&|part| &part.rewards), seeds, floats(&|part| &part.info)];
    let flags = [bytes(&|part| &part.terminated), bytes(&|part| &part.truncated)];
    let mut pieces: Vec<&[u8]> = long.iter().map(Vec::as_slice).collect();
    let fields = parts.first().map_or(0, |part| part.observations.0.len());
    for field in 0..fields {
        pieces.extend(parts.iter().map(|part| part.observations.0[field].as_slice()));
    }
    pieces.extend(flags.iter().map(Vec::as_slice));
    write_frame(output, answer::RESULTS, &pieces)
}
