//! Regular expressions of offer constraints: RE2's syntax, whole matches, and a limit on their size. The size is
//! computed before anything is built, so that an expression with a huge program costs nothing.
//!
//! RE2 and the `regex` crate differ in the meaning of `\d`, `\s`, `\w` and `\b`: those of RE2 are ASCII only. They are
//! rewritten here.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind};

/// Longest expression that is parsed, in bytes: parsing takes time in proportion to it.
const MAX_LENGTH: usize = 64 * 1024;

/// Size limits of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegexLimits {
    /// Limit of memory in bytes: `--offer_constraints_re2_max_mem`. An instruction is assumed to need 28 bytes, which
    /// follows from the documentation of the flag's default (54 instructions in 1499 bytes).
    pub max_memory: usize,
    /// Limit of the number of instructions: `--offer_constraints_re2_max_program_size`. They are counted much as RE2
    /// counts them: one per byte, one per range of a class, one per branch; a counted repetition is this many copies.
    pub max_program_size: usize,
}

impl Default for RegexLimits {
    fn default() -> RegexLimits {
        RegexLimits { max_memory: 4096, max_program_size: 100 }
    }
}

/// Reasons why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// The expression is invalid, or needs more memory than the limit.
    #[error("Failed to construct regex from pattern '{pattern}': {why}")]
    Broken {
        /// The expression, or its beginning if it is long.
        pattern: String,
        /// Message of the error.
        why: String,
    },
    /// The expression has too many instructions.
    #[error("Regex '{pattern}' is too complex: program size of {size} is larger than maximum of {limit} allowed")]
    TooComplex {
        /// The expression, or its beginning if it is long.
        pattern: String,
        /// Number of instructions of the expression.
        size: usize,
        /// Limit of the number of instructions.
        limit: usize,
    },
}

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    pub(crate) fn new(text: &str, limits: RegexLimits) -> Result<Pattern, PatternError> {
        let broken = |why: String| PatternError::Broken { pattern: shown(text), why };
        if text.len() > MAX_LENGTH {
            return Err(broken(format!("it is longer than {MAX_LENGTH} bytes")));
        }
        let ascii = ascii_classes(text);
        // Other limits than that of nesting follow from counting.
        let hir = regex_syntax::ParserBuilder::new().nest_limit(100).build().parse(&ascii);
        let hir = hir.map_err(|error| broken(kind(&error)))?;
        let size = size(&hir).saturating_add(1);
        if size > limits.max_program_size {
            return Err(PatternError::TooComplex { pattern: shown(text), size, limit: limits.max_program_size });
        }
        if size.saturating_mul(28) > limits.max_memory {
            return Err(broken("pattern too large - compile failed".to_owned()));
        }
        let anchored = format!("^(?:{ascii})$");
        // An instruction needs far less than this, and the search cache is limited, too.
        let most = limits.max_memory.saturating_mul(64).max(1 << 20);
        let built = RegexBuilder::new(&anchored).size_limit(most).dfa_size_limit(1 << 16).build();
        built.map(Pattern).map_err(|error| broken(error.to_string().replace('\n', " ")))
    }

    /// Returns whether the expression matches the whole text.
    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Returns the expression as errors show it: only its beginning if it is long.
fn shown(pattern: &str) -> String {
    match pattern.char_indices().nth(256) {
        Some((end, _)) => format!("{}...", &pattern[..end]),
        None => pattern.to_owned(),
    }
}

/// Returns the error's message without the position in the expression.
fn kind(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        error => error.to_string().replace('\n', " "),
    }
}

/// Returns the expression with `\d`, `\s`, `\w` and `\b` rewritten to mean ASCII only.
fn ascii_classes(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains('\\') {
        return Cow::Borrowed(pattern);
    }
    let mut text = String::with_capacity(pattern.len() + 16);
    let (mut chars, mut in_class) = (pattern.chars(), false);
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('d') => text.push_str("[0-9]"),
                Some('D') => text.push_str("[^0-9]"),
                Some('s') => text.push_str("[\\t\\n\\f\\r ]"),
                Some('S') => text.push_str("[^\\t\\n\\f\\r ]"),
                Some('w') => text.push_str("[0-9A-Za-z_]"),
                Some('W') => text.push_str("[^0-9A-Za-z_]"),
                Some('b') if !in_class => text.push_str("(?-u:\\b)"),
                Some(other) => text.extend(['\\', other]),
                None => text.push('\\'),
            },
            '[' | ']' => {
                in_class = c == '[';
                text.push(c);
            }
            _ => text.push(c),
        }
    }
    Cow::Owned(text)
}

/// Returns the number of instructions of an expression, saturating. Repetitions are multiplied, not expanded.
fn size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty => 0,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(class) => class_size(class),
        HirKind::Look(_) => 1,
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) => parts.iter().fold(0, |sum, part| sum.saturating_add(size(part))),
        HirKind::Alternation(parts) => {
            parts.iter().fold(0, |sum, part| sum.saturating_add(size(part)).saturating_add(1))
        }
        HirKind::Repetition(repetition) => {
            let one = size(&repetition.sub).max(1);
            let least = one.saturating_mul(repetition.min as usize);
            match repetition.max {
                None if repetition.min == 0 => one.saturating_add(1),
                None => least.saturating_add(1),
                Some(max) => {
                    let more = max.saturating_sub(repetition.min) as usize;
                    least.saturating_add(more.saturating_mul(one.saturating_add(1)))
                }
            }
        }
    }
}

/// Returns the number of instructions of a class: one per range; a range beyond ASCII is a few sequences of bytes.
fn class_size(class: &Class) -> usize {
    let ranges = |ends: &mut dyn Iterator<Item = char>| {
        ends.map(|end| if end.is_ascii() { 1 } else { 2 * end.len_utf8() }).sum()
    };
    match class {
        Class::Unicode(class) => ranges(&mut class.iter().map(regex_syntax::hir::ClassUnicodeRange::end)),
        Class::Bytes(class) => class.iter().count(),
    }
}
