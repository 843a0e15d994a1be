//! The parser of messages: one pass over the text, directly into the struct.
//!
//! It reads what writers of JSON usually send. Anything else (an error, a repeated key, two members of a oneof, an
//! escape in a key) ends the pass with [`Fail`]. The text is then read as a [`super::Value`], written again with sorted
//! keys, each once, and passed through the same reader a second time with `ordered` set: now the first error in the
//! text's order is the first in sorted order, which is the one that Mesos reports.

use super::lexer::{Lexed, Lexer, MAX_DEPTH, Number};

/// A pass that ended early; [`Parser::error`] has the reason if it was the ordered one.
pub(crate) struct Fail;

pub(crate) type Outcome<T> = Result<T, Fail>;

pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    depth: usize,
    /// Whether this is the ordered pass: keys are sorted and unique, and errors are reported.
    pub(crate) ordered: bool,
    /// Whether a required field was absent in any message.
    pub(crate) missing: bool,
    /// Error of the ordered pass.
    pub(crate) error: Option<String>,
    /// Bytes of memory that lists may still take.
    pub(crate) budget: usize,
}

/// The keys of the object that is being read.
pub(crate) struct Seen {
    names: &'static [&'static str],
    /// One bit for each field that had a key.
    keys: u64,
    /// One bit for each field that had a value other than `null`.
    given: u64,
    index: usize,
    started: bool,
}

impl Seen {
    #[inline]
    pub(crate) fn new(names: &'static [&'static str]) -> Self {
        Self { names, keys: 0, given: 0, index: usize::MAX, started: false }
    }

    /// Returns the keys for the values of a map, whose name in Mesos's errors is `value`.
    pub(crate) fn map_value() -> Self {
        Self { index: 0, ..Self::new(&["value"]) }
    }

    /// Records that the current field has a value.
    #[inline]
    pub(crate) fn give(&mut self) {
        self.given |= 1 << (self.index & 63);
    }

    pub(crate) fn name(&self) -> &'static str {
        self.names.get(self.index).copied().unwrap_or_default()
    }

    /// Returns the index of the field of that name. Writers mostly keep the declared order, so the search starts after
    /// the last one.
    #[inline]
    fn find(&self, key: &str) -> Option<usize> {
        let next = self.index.wrapping_add(1);
        if self.names.get(next).is_some_and(|name| *name == key) {
            return Some(next);
        }
        self.names.iter().position(|name| *name == key)
    }
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &'a str, ordered: bool, budget: usize) -> Self {
        Self { lexer: Lexer::new(text), depth: 0, ordered, missing: false, error: None, budget }
    }

    /// Returns the lexer's result; its errors, if they must be reported, were reported before the ordered pass began.
    #[inline]
    pub(crate) fn lex<T>(lexed: Lexed<T>) -> Outcome<T> {
        lexed.map_err(|_| Fail)
    }

    /// Enters an object or array whose opening bracket is next.
    #[inline]
    pub(crate) fn enter(&mut self) -> Outcome<()> {
        if self.depth >= MAX_DEPTH {
            return Err(Fail);
        }
        self.depth += 1;
        self.lexer.pos += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Reads the next key that names a field and returns the field's index in declaration order; its value is next.
    /// Unknown keys are skipped with their values. Returns `None` at the end of the object, which is consumed.
    #[inline]
    pub(crate) fn key(&mut self, seen: &mut Seen) -> Outcome<Option<usize>> {
        loop {
            match self.lexer.peek() {
                Some(b'}') => {
                    self.lexer.pos += 1;
                    return Ok(None);
                }
                Some(b',') if seen.started => {
                    self.lexer.pos += 1;
                    self.lexer.peek();
                }
                _ if seen.started => return Err(Fail),
                _ => seen.started = true,
            }
            Self::lex(self.lexer.expect(b'"'))?;
            let key = Self::lex(self.lexer.string())?;
            Self::lex(self.lexer.expect(b':'))?;
            if let Some(index) = seen.find(&key) {
                let bit = 1u64 << (index & 63);
                if seen.keys & bit != 0 {
                    return Err(Fail);
                }
                seen.keys |= bit;
                seen.index = index;
                return Ok(Some(index));
            }
            self.skip()?;
        }
    }

    /// Records a missing field if a field of `mask` has no value.
    #[inline]
    pub(crate) fn required(&mut self, seen: &Seen, mask: u64) {
        if seen.given & mask != mask {
            self.missing = true;
        }
    }

    /// Fails the first pass at a second member of a oneof: which of them counts depends on the order.
    #[inline]
    pub(crate) fn alone(&self, seen: &Seen, others: u64) -> Outcome<()> {
        if !self.ordered && seen.keys & others != 0 { Err(Fail) } else { Ok(()) }
    }

    /// Consumes `null`, which leaves the field unset; any other value has a wrong type.
    #[inline]
    pub(crate) fn null(&mut self, seen: &Seen) -> Outcome<()> {
        if self.lexer.byte() == Some(b'n') {
            return Self::lex(self.lexer.word("null"));
        }
        Err(self.mismatch(seen))
    }

    #[cold]
    fn mismatch(&mut self, seen: &Seen) -> Fail {
        let what = match self.lexer.byte() {
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b'"') => "string",
            Some(b't' | b'f') => "boolean",
            _ => "number",
        };
        self.fail(|| format!("Not expecting a JSON {what} for field '{}'", seen.name()))
    }

    /// Ends the pass; the text of the error is created only if it is needed.
    #[cold]
    pub(crate) fn fail(&mut self, text: impl FnOnce() -> String) -> Fail {
        if self.ordered && self.error.is_none() {
            self.error = Some(text());
        }
        Fail
    }

    /// Subtracts one more element of a list from the memory budget.
    #[inline]
    pub(crate) fn charge(&mut self, bytes: usize) -> Outcome<()> {
        match self.budget.checked_sub(bytes) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(Fail),
        }
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Outcome<Number> {
        Self::lex(self.lexer.number())
    }

    /// Skips any value.
    pub(crate) fn skip(&mut self) -> Outcome<()> {
        match self.lexer.peek() {
            Some(b'n') => Self::lex(self.lexer.word("null")),
            Some(b't') => Self::lex(self.lexer.word("true")),
            Some(b'f') => Self::lex(self.lexer.word("false")),
            Some(b'"') => {
                self.lexer.pos += 1;
                Self::lex(self.lexer.string()).map(drop)
            }
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            Some(b'[') => self.items(&mut |p| p.skip()),
            Some(b'{') => {
                let mut seen = Seen::new(&[]);
                self.enter()?;
                while self.key(&mut seen)?.is_some() {}
                self.leave();
                Ok(())
            }
            _ => Err(Fail),
        }
    }

    /// Reads an array whose bracket is next, each element with `item`.
    #[inline]
    pub(crate) fn items<F: FnMut(&mut Self) -> Outcome<()>>(&mut self, item: &mut F) -> Outcome<()> {
        self.enter()?;
        if !self.lexer.accept(b']') {
            loop {
                item(self)?;
                if !self.lexer.accept(b',') {
                    break;
                }
            }
            Self::lex(self.lexer.expect(b']'))?;
        }
        self.leave();
        Ok(())
    }
}
