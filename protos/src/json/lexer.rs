//! Reads strings, numbers and words of JSON text by picojson's rules, with the position at which picojson would stop.
//!
//! Both readers use it: the one that reads messages and the one that reads [`super::Value`]s.

use std::borrow::Cow;

/// Maximum nesting depth of objects and arrays; deeper ones are a syntax error.
pub(crate) const MAX_DEPTH: usize = 200;

/// An error of text that is not JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LexError {
    /// A syntax error. `rest` is the start of the unread text, `last` the position of the last character that was
    /// examined.
    Syntax { rest: usize, last: usize },
    /// The number is out of the range of a double.
    Range,
}

pub(crate) type Lexed<T> = Result<T, LexError>;

/// A number: an integer if it has neither point nor exponent and fits in 64 bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Number {
    Int(i64),
    Double(f64),
}

#[derive(Clone, Copy)]
pub(crate) struct Lexer<'a> {
    pub(crate) text: &'a str,
    pub(crate) pos: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, pos: 0 }
    }

    #[inline]
    pub(crate) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// Returns the next byte that is not whitespace, without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b) = bytes.get(self.pos) {
            if !matches!(b, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*b);
            }
            self.pos += 1;
        }
        None
    }

    /// Consumes `wanted` after whitespace, if it is next. Returns whether it was.
    #[inline]
    pub(crate) fn accept(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.pos += usize::from(found);
        found
    }

    #[inline]
    pub(crate) fn expect(&mut self, wanted: u8) -> Lexed<()> {
        if self.accept(wanted) { Ok(()) } else { Err(self.here()) }
    }

    /// Returns the error of a character that was examined and not consumed.
    pub(crate) fn here(&self) -> LexError {
        LexError::Syntax { rest: self.pos, last: self.pos }
    }

    /// Returns the error of the character that was just consumed.
    pub(crate) fn behind(&self) -> LexError {
        LexError::Syntax { rest: self.pos, last: self.pos.saturating_sub(1) }
    }

    /// Consumes `word`, whose first letter is known to be next.
    pub(crate) fn word(&mut self, word: &str) -> Lexed<()> {
        for b in word.bytes() {
            if self.byte() != Some(b) {
                return Err(self.here());
            }
            self.pos += 1;
        }
        Ok(())
    }

    /// Reads the rest of a string whose opening quote is consumed.
    #[inline]
    pub(crate) fn string(&mut self) -> Lexed<Cow<'a, str>> {
        let start = self.pos;
        match self.run() {
            Some(b'"') => {
                let plain = &self.text[start..self.pos];
                self.pos += 1;
                Ok(Cow::Borrowed(plain))
            }
            Some(b'\\') => self.escaped(start).map(Cow::Owned),
            _ => Err(self.here()),
        }
    }

    /// Moves to the next quote, backslash or control character and returns it.
    #[inline]
    fn run(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&b) = bytes.get(self.pos) {
            if ENDS[usize::from(b)] {
                return Some(b);
            }
            self.pos += 1;
        }
        None
    }

    /// Reads the rest of a string with escapes: `start` is its beginning, and the next byte is the first backslash.
    #[cold]
    fn escaped(&mut self, start: usize) -> Lexed<String> {
        let mut out = String::from(&self.text[start..self.pos]);
        loop {
            let from = self.pos;
            let end = self.run();
            out.push_str(&self.text[from..self.pos]);
            match end {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.pos += 1;
                    out.push(self.escape()?);
                }
                _ => return Err(self.here()),
            }
        }
    }

    /// Reads an escape whose backslash is consumed, and returns its character.
    fn escape(&mut self) -> Lexed<char> {
        let Some(b) = self.byte() else { return Err(self.here()) };
        let plain = match b {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.pos += 1;
                return self.code_point();
            }
            _ => {
                // The invalid character counts as read, with all its bytes.
                self.pos += self.text[self.pos..].chars().next().map_or(1, char::len_utf8);
                return Err(self.behind());
            }
        };
        self.pos += 1;
        Ok(plain)
    }

    /// Reads the four hex digits after `\u`, and the second escape if they are half of a pair.
    fn code_point(&mut self) -> Lexed<char> {
        let first = self.hex()?;
        if !(0xd800..0xe000).contains(&first) {
            return char::from_u32(first).ok_or(self.behind());
        }
        if first >= 0xdc00 {
            return Err(self.behind());
        }
        for wanted in [b'\\', b'u'] {
            if self.byte() != Some(wanted) {
                return Err(self.here());
            }
            self.pos += 1;
        }
        let second = self.hex()?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(self.behind());
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(self.behind())
    }

    fn hex(&mut self) -> Lexed<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.byte().and_then(|b| char::from(b).to_digit(16)).ok_or(self.here())?;
            code = code * 16 + digit;
            self.pos += 1;
        }
        Ok(code)
    }

    /// Reads a number whose first character, a digit or `-`, is next.
    #[inline]
    pub(crate) fn number(&mut self) -> Lexed<Number> {
        let bytes = self.text.as_bytes();
        let start = self.pos;
        let mut value: u64 = 0;
        while let Some(digit) = bytes.get(self.pos).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            self.pos += 1;
        }
        let more = matches!(self.byte(), Some(b'.' | b'e' | b'E' | b'+' | b'-'));
        // 18 digits always fit.
        if !more && (1..=18).contains(&(self.pos - start)) {
            return Ok(Number::Int(value.cast_signed()));
        }
        self.other_number(start)
    }

    /// Reads a number that is negative, long, or has a point or an exponent.
    fn other_number(&mut self, start: usize) -> Lexed<Number> {
        while matches!(self.byte(), Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
            self.pos += 1;
        }
        let text = &self.text[start..self.pos];
        if let Ok(value) = text.parse::<i64>() {
            return Ok(Number::Int(value));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Number::Double(value)),
            Ok(_) => Err(LexError::Range),
            Err(_) => Err(self.here()),
        }
    }

    /// Returns picojson's message for `error`.
    pub(crate) fn explain(&self, error: LexError) -> String {
        let LexError::Syntax { rest, last } = error else { return "Value out of range".to_owned() };
        let bytes = self.text.as_bytes();
        // A line ends when the character after its newline is examined: a newline at the very end is not counted.
        let seen = if last >= bytes.len() { bytes.len().saturating_sub(1) } else { last };
        let line = 1 + bytes[..seen].iter().filter(|b| **b == b'\n').count();
        let near: String = self.text[rest..].chars().take_while(|c| *c != '\n').filter(|c| *c >= ' ').collect();
        format!("syntax error at line {line} near: {near}")
    }
}

/// Bytes that end a run of plain characters in a string.
static ENDS: [bool; 256] = {
    let mut ends = [false; 256];
    let mut b = 0;
    while b < 0x20 {
        ends[b] = true;
        b += 1;
    }
    ends[b'"' as usize] = true;
    ends[b'\\' as usize] = true;
    ends
};
