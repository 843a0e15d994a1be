//! The protocol of a user's training program: lines of JSON on its standard output and standard input.
//!
//! This module reads and writes lines. It runs no program and opens no file.
//!
//! | line of the program | meaning |
//! |---|---|
//! | `{"hello": {"elastic": true, "checkpoints": true}}` | its capabilities; without this line, none |
//! | `{"iteration": 7, "loss": 0.5}` | an iteration is done, from 0; also `accuracy`, `validation` (`loss`, `accuracy`), `samples`, `busy` |
//! | `{"checkpoint": "...", "iteration": 7}` | its state after this iteration: a text of its own form |
//!
//! | line for the program | request |
//! |---|---|
//! | `{"start": {"job": "a", "cores": 2, "iteration": 8, "checkpoint": "..."}}` | the first line: begin with this iteration, from this state; `null` if there is none. With `"best": 0.5` write a checkpoint after each iteration with a lower validation loss than all before, which is this so far; `null` if there is none |
//! | `{"request": "checkpoint"}` | write a checkpoint after the current iteration |
//! | `{"request": "stop"}` | write a checkpoint and end |

use serde::{Deserialize, Serialize};

use crate::learn::Score;

/// Maximum length of a line of a program, in bytes. It bounds the state of a checkpoint.
pub const LINE_MAX: usize = 4 << 20;
/// Number of characters of a line that a message shows.
const SHOWN: usize = 60;

/// A line of a program's standard output.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// Capabilities of the program.
    Hello(Capabilities),
    /// An iteration is done.
    Iteration(Report),
    /// State of the program after an iteration.
    Checkpoint {
        /// Last iteration that the state includes.
        iteration: u64,
        /// State, in the program's own form.
        state: String,
    },
}

/// The capabilities of a training program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Whether the program uses as many cores as its start line names, and continues from a checkpoint with another
    /// number.
    pub elastic: bool,
    /// Whether the program writes checkpoints on request, and continues from them. An elastic program does.
    pub checkpoints: bool,
}

/// An iteration, as a program reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Number of the iteration, from 0.
    pub iteration: u64,
    /// Finite loss of the iteration.
    pub loss: f64,
    /// Share of the examples that are classified correctly.
    pub accuracy: Option<f64>,
    /// Score on data that the program does not learn from.
    pub validation: Option<Score>,
    /// Number of examples in the iteration.
    pub samples: Option<u64>,
    /// Core-seconds that the iteration computed; without it all its cores are assumed to be busy all the time.
    pub busy: Option<f64>,
}

/// An error for a line that is not of the protocol. The job fails with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The line is longer than [`LINE_MAX`].
    #[error("line {0} of its standard output is longer than {LINE_MAX} bytes")]
    TooLong(u64),
    /// The line is not UTF-8.
    #[error("line {0} of its standard output is not UTF-8")]
    NotText(u64),
    /// The line is not JSON of the protocol.
    #[error(
        "line {line} of its standard output is not of the protocol, '{text}': {why}; other output belongs on standard error"
    )]
    Invalid {
        /// Number of the line, from 1.
        line: u64,
        /// Beginning of the line.
        text: String,
        /// Rule that the line breaks.
        why: String,
    },
    /// A number of an iteration is not finite, or missing.
    #[error("line {line} of its standard output: {item} must be a finite number")]
    NotANumber {
        /// Number of the line, from 1.
        line: u64,
        /// Name of the number.
        item: &'static str,
    },
    /// Iterations do not follow each other.
    #[error("line {line} of its standard output reports iteration {got}; {want} comes next")]
    Order {
        /// Number of the line, from 1.
        line: u64,
        /// Iteration that the line reports.
        got: u64,
        /// Iteration that was expected.
        want: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    hello: Option<Capabilities>,
    iteration: Option<u64>,
    loss: Option<f64>,
    accuracy: Option<f64>,
    validation: Option<WrittenScore>,
    samples: Option<u64>,
    busy: Option<f64>,
    checkpoint: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenScore {
    loss: f64,
    accuracy: Option<f64>,
}

/// Parses a line; `number` is its number, from 1, for messages.
///
/// # Errors
/// The line is not of the protocol.
pub fn parse(number: u64, text: &str) -> Result<Line, LineError> {
    if text.len() > LINE_MAX {
        return Err(LineError::TooLong(number));
    }
    let shown = || match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let invalid = |why: String| LineError::Invalid { line: number, text: shown(), why };
    let not_a_number = |item: &'static str| LineError::NotANumber { line: number, item };
    let written: Written = match serde_json::from_str(text) {
        Ok(written) => written,
        Err(error) => {
            return Err(item_in_words(text).map_or_else(|| invalid(error.to_string()), not_a_number));
        }
    };
    match written {
        Written { hello: Some(capabilities), .. } => Ok(Line::Hello(Capabilities {
            checkpoints: capabilities.checkpoints || capabilities.elastic,
            ..capabilities
        })),
        Written { checkpoint: Some(state), iteration: Some(iteration), .. } => {
            Ok(Line::Checkpoint { iteration, state })
        }
        Written { checkpoint: Some(_), .. } => Err(invalid("a checkpoint must name its `iteration`".to_owned())),
        Written { iteration: Some(iteration), loss, accuracy, validation, samples, busy, .. } => {
            let finite = |value: f64, item| if value.is_finite() { Ok(value) } else { Err(not_a_number(item)) };
            let loss = finite(loss.unwrap_or(f64::NAN), "loss")?;
            let accuracy = accuracy.map(|a| finite(a, "accuracy")).transpose()?;
            let busy = busy.map(|b| finite(b, "busy")).transpose()?;
            let score = |w: WrittenScore| {
                let accuracy = w.accuracy.map(|a| finite(a, "validation.accuracy")).transpose()?;
                Ok(Score { loss: finite(w.loss, "validation.loss")?, accuracy })
            };
            let validation = validation.map(score).transpose()?;
            Ok(Line::Iteration(Report { iteration, loss, accuracy, validation, samples, busy }))
        }
        _ => Err(invalid("it has none of `hello`, `iteration` and `checkpoint`".to_owned())),
    }
}

/// Returns the name of the first number for which a line has a word that JSON does not have, as many libraries write.
fn item_in_words(text: &str) -> Option<&'static str> {
    let word = ["NaN", "Infinity"].iter().filter_map(|word| text.find(word)).min()?;
    let before = &text[..word];
    let at = |item: &str| before.rfind(&format!("\"{item}\""));
    let (_, item) = ["loss", "accuracy", "busy"].into_iter().filter_map(|item| Some((at(item)?, item))).max()?;
    let in_validation = before.matches('{').count() > before.matches('}').count() + 1;
    Some(match item {
        "loss" if in_validation => "validation.loss",
        "accuracy" if in_validation => "validation.accuracy",
        item => item,
    })
}

/// The first line for a program.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Start<'a> {
    /// Name of the program's job.
    pub job: &'a str,
    /// Number of cores of the program.
    pub cores: u32,
    /// Iteration with which the program begins.
    pub iteration: u64,
    /// State from which the program continues; `None` if there is none.
    pub checkpoint: Option<&'a str>,
    /// Lowest validation loss with a checkpoint, if the best model is to be saved; the inner value is `None` before the
    /// first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<Option<f64>>,
}

impl Start<'_> {
    /// Formats the line.
    pub fn line(&self) -> String {
        serde_json::json!({ "start": self }).to_string()
    }
}

/// The line that requests a checkpoint.
pub const CHECKPOINT: &str = "{\"request\": \"checkpoint\"}";
/// The line that requests the end.
pub const STOP: &str = "{\"request\": \"stop\"}";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_lines_of_the_protocol_are_read() {
        let elastic = Capabilities { elastic: true, checkpoints: true };
        assert_eq!(parse(1, r#"{"hello": {"elastic": true}}"#), Ok(Line::Hello(elastic)));
        assert_eq!(parse(1, r#"{"hello": {}}"#), Ok(Line::Hello(Capabilities::default())));
        let report = Report { iteration: 7, loss: 0.5, ..Report::default() };
        assert_eq!(parse(2, r#"{"iteration": 7, "loss": 0.5}"#), Ok(Line::Iteration(report)));
        let score = Score { loss: 0.75, accuracy: Some(0.5) };
        let full = Report { accuracy: Some(1.0), validation: Some(score), samples: Some(9), busy: Some(2.0), ..report };
        let text = r#"{"iteration": 7, "loss": 0.5, "accuracy": 1, "validation": {"loss": 0.75, "accuracy": 0.5}, "samples": 9, "busy": 2}"#;
        assert_eq!(parse(2, text), Ok(Line::Iteration(full)));
        let state = parse(3, r#"{"checkpoint": "w 1.5\n", "iteration": 7}"#).unwrap();
        assert_eq!(state, Line::Checkpoint { iteration: 7, state: "w 1.5\n".to_owned() });
        let start = Start { job: "a", cores: 2, iteration: 8, checkpoint: Some("w \"1\"\n"), best: None };
        let read =
            |start: Start<'_>| serde_json::from_str::<serde_json::Value>(&start.line()).unwrap()["start"].clone();
        let wanted = serde_json::json!({"job": "a", "cores": 2, "iteration": 8, "checkpoint": "w \"1\"\n"});
        assert_eq!(read(start), wanted);
        let best = [None, Some(0.5)].map(|best| read(Start { best: Some(best), ..start })["best"].clone());
        assert_eq!(best, [serde_json::Value::Null, 0.5.into()]);
    }

    #[test]
    fn other_lines_are_refused_with_their_number_and_the_rule() {
        let said = |text: &str| parse(4, text).unwrap_err().to_string();
        let epoch = said("epoch 1 of 10");
        assert!(
            epoch.starts_with("line 4 of its standard output is not of the protocol, 'epoch 1 of 10': "),
            "{epoch}"
        );
        assert!(epoch.ends_with("; other output belongs on standard error"), "{epoch}");
        assert!(said(&"x".repeat(100)).contains(&format!("'{}…'", "x".repeat(60))));
        for text in [
            r#"{"iteration": 3, "loss": NaN}"#,
            r#"{"iteration": 3, "loss": -Infinity}"#,
            r#"{"iteration": 3, "loss": null}"#,
            r#"{"iteration": 3}"#,
        ] {
            assert_eq!(said(text), "line 4 of its standard output: loss must be a finite number", "{text}");
        }
        for (text, item) in [
            (r#"{"iteration": 3, "loss": 1, "accuracy": NaN}"#, "accuracy"),
            (r#"{"iteration": 3, "loss": 1, "busy": -Infinity, "accuracy": NaN}"#, "busy"),
            (r#"{"iteration": 3, "loss": 1, "validation": {"loss": NaN}}"#, "validation.loss"),
            (r#"{"validation": {"loss": 1, "accuracy": Infinity}, "iteration": 3, "loss": 1}"#, "validation.accuracy"),
            (r#"{"validation": {"loss": 1}, "iteration": 3, "loss": NaN}"#, "loss"),
        ] {
            assert_eq!(said(text), format!("line 4 of its standard output: {item} must be a finite number"));
        }
        assert!(said("NaN").contains("not of the protocol"));
        assert!(said(r#"{"iteration": -1, "loss": 2}"#).contains("invalid value: integer `-1`"));
        assert!(said(r#"{"iteration": 1, "los": 2}"#).contains("unknown field `los`"));
        assert!(said(r#"{"checkpoint": 1, "iteration": 1}"#).contains("expected a string"));
        assert!(said(r#"{"checkpoint": "w"}"#).contains("a checkpoint must name its `iteration`"));
        assert!(said("{}").contains("none of `hello`, `iteration` and `checkpoint`"));
        let long = format!("{{\"checkpoint\": \"{}\", \"iteration\": 1}}", "x".repeat(LINE_MAX));
        assert_eq!(said(&long), format!("line 4 of its standard output is longer than {LINE_MAX} bytes"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_line_or_an_error(text in ".{0,80}") {
            let _ = parse(1, &text);
        }
    }
}
