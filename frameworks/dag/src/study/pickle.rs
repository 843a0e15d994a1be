//! Reads the task durations of the public TPC-H traces: NumPy files with one pickled object of integers, texts, lists
//! and dictionaries. It runs no code of a pickle and knows no classes.

use super::error::StudyError;

/// Maximum number of objects of a pickle.
const OBJECTS: usize = 8_000_000;

/// Maximum nesting of lists.
const DEPTH: usize = 32;

/// A value of a pickle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// None, or the result of a call.
    Other,
    /// An integer or a boolean.
    Integer(i64),
    /// A text; invalid UTF-8 is replaced.
    Text(String),
    /// A list or a tuple.
    List(Vec<Value>),
    /// Pairs of keys and values.
    Dictionary(Vec<(Value, Value)>),
}

impl Value {
    /// Returns the value of a key of a dictionary.
    pub fn get(&self, key: &Value) -> Option<&Value> {
        let Value::Dictionary(entries) = self else { return None };
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns the integers of a list; `None` for other values.
    pub fn integers(&self) -> Option<Vec<i64>> {
        let Value::List(values) = self else { return None };
        values.iter().map(|value| if let Value::Integer(number) = value { Some(*number) } else { None }).collect()
    }
}

/// An object during reading; others refer to it by its index.
enum Object {
    Other { state: Option<usize> },
    Integer(i64),
    Text(String),
    List(Vec<usize>),
    Dictionary(Vec<(usize, usize)>),
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    objects: Vec<Object>,
    stack: Vec<usize>,
    marks: Vec<usize>,
    memo: Vec<(u32, usize)>,
}

/// Reads the object of a NumPy file with `dtype('O')` and no dimensions.
///
/// # Errors
/// A description of what is not as expected.
pub fn object_of_npy(bytes: &[u8]) -> Result<Value, StudyError> {
    let (header, rest) = super::npy::header(bytes)?;
    if !header.contains("'O'") && !header.contains("'|O'") {
        return Err(StudyError::format("a NumPy file of an object", "its header names another type"));
    }
    let array = read(rest)?;
    // The state of an array: version, shape, type, order, and the list of its objects.
    match &array {
        Value::List(state) => match state.get(4) {
            Some(Value::List(objects)) if objects.len() == 1 => Ok(objects[0].clone()),
            _ => Err(StudyError::format("an array of one object", "it has none or several")),
        },
        _ => Err(StudyError::format("an array", "the pickle holds something else")),
    }
}

/// Reads a pickle of protocol 2. An object that is made by a call is represented by its state.
///
/// # Errors
/// An instruction is unknown, or the bytes end before the pickle.
pub fn read(bytes: &[u8]) -> Result<Value, StudyError> {
    let mut reader =
        Reader { bytes, at: 0, objects: Vec::new(), stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
    while reader.step()? {}
    let top = reader.pop()?;
    reader.value(top, 0)
}

impl Reader<'_> {
    /// Executes one instruction. Returns whether there are more.
    fn step(&mut self) -> Result<bool, StudyError> {
        let code = self.byte()?;
        match code {
            // PROTO
            0x80 => {
                self.byte()?;
            }
            b'.' => return Ok(false),
            b'c' => {
                self.line()?;
                self.line()?;
                self.push(Object::Other { state: None })?;
            }
            b'N' => self.push(Object::Other { state: None })?,
            // TRUE and FALSE
            0x88 => self.push(Object::Integer(1))?,
            0x89 => self.push(Object::Integer(0))?,
            b'K' => self.integer(1)?,
            b'M' => self.integer(2)?,
            b'J' => {
                let four = self.take(4)?;
                let number = i32::from_le_bytes([four[0], four[1], four[2], four[3]]);
                self.push(Object::Integer(i64::from(number)))?;
            }
            b'U' => {
                let length = usize::from(self.byte()?);
                let text = String::from_utf8_lossy(self.take(length)?).into_owned();
                self.push(Object::Text(text))?;
            }
            b'X' => {
                let length = self.number(4)? as usize;
                let text = String::from_utf8_lossy(self.take(length)?).into_owned();
                self.push(Object::Text(text))?;
            }
            b'q' => self.remember(1)?,
            b'r' => self.remember(4)?,
            b'h' => self.recall(1)?,
            b'j' => self.recall(4)?,
            b'(' => self.marks.push(self.stack.len()),
            b')' => self.push(Object::List(Vec::new()))?,
            b'0' => {
                self.pop()?;
            }
            _ => self.collection(code)?,
        }
        Ok(true)
    }

    /// Executes instructions for lists, tuples, dictionaries and calls.
    fn collection(&mut self, code: u8) -> Result<(), StudyError> {
        match code {
            b']' => self.push(Object::List(Vec::new()))?,
            b'}' => self.push(Object::Dictionary(Vec::new()))?,
            // TUPLE1 to TUPLE3
            0x85..=0x87 => {
                let from = self.stack.len().checked_sub(usize::from(code - 0x84)).ok_or_else(short)?;
                let items = self.stack.split_off(from);
                self.push(Object::List(items))?;
            }
            b't' => {
                let items = self.marked()?;
                self.push(Object::List(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.extend(vec![item])?;
            }
            b'e' => {
                let items = self.marked()?;
                self.extend(items)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.insert(&[key, value])?;
            }
            b'u' => {
                let items = self.marked()?;
                self.insert(&items)?;
            }
            // REDUCE: replaces the function and its arguments by what the call would return.
            b'R' => {
                self.pop()?;
                self.pop()?;
                self.push(Object::Other { state: None })?;
            }
            // BUILD
            b'b' => {
                let given = self.pop()?;
                match self.top()? {
                    Object::Other { state } => *state = Some(given),
                    _ => return Err(StudyError::format("an object with a state", "it is none")),
                }
            }
            other => return Err(StudyError::format("a known instruction of a pickle", format!("{other:#04x}"))),
        }
        Ok(())
    }

    fn value(&self, at: usize, depth: usize) -> Result<Value, StudyError> {
        if depth > DEPTH {
            return Err(StudyError::format("a pickle of lists", "they are nested too deeply"));
        }
        Ok(match &self.objects[at] {
            Object::Other { state: None } => Value::Other,
            Object::Other { state: Some(state) } => self.value(*state, depth + 1)?,
            Object::Integer(number) => Value::Integer(*number),
            Object::Text(text) => Value::Text(text.clone()),
            Object::List(items) => {
                Value::List(items.iter().map(|item| self.value(*item, depth + 1)).collect::<Result<_, _>>()?)
            }
            Object::Dictionary(entries) => {
                let entry =
                    |(key, value): &(usize, usize)| Ok((self.value(*key, depth + 1)?, self.value(*value, depth + 1)?));
                Value::Dictionary(entries.iter().map(entry).collect::<Result<_, StudyError>>()?)
            }
        })
    }

    fn push(&mut self, object: Object) -> Result<(), StudyError> {
        if self.objects.len() >= OBJECTS {
            return Err(StudyError::format("a pickle", "it has too many objects"));
        }
        self.stack.push(self.objects.len());
        self.objects.push(object);
        Ok(())
    }

    fn pop(&mut self) -> Result<usize, StudyError> {
        self.stack.pop().ok_or_else(short)
    }

    fn top(&mut self) -> Result<&mut Object, StudyError> {
        let at = *self.stack.last().ok_or_else(short)?;
        Ok(&mut self.objects[at])
    }

    fn marked(&mut self) -> Result<Vec<usize>, StudyError> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len()).ok_or_else(short)?;
        Ok(self.stack.split_off(mark))
    }

    fn extend(&mut self, items: Vec<usize>) -> Result<(), StudyError> {
        match self.top()? {
            Object::List(list) => list.extend(items),
            _ => return Err(StudyError::format("a list", "it is none")),
        }
        Ok(())
    }

    fn insert(&mut self, items: &[usize]) -> Result<(), StudyError> {
        match self.top()? {
            Object::Dictionary(entries) => entries.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1]))),
            _ => return Err(StudyError::format("a dictionary", "it is none")),
        }
        Ok(())
    }

    fn remember(&mut self, bytes: usize) -> Result<(), StudyError> {
        let (key, top) = (self.number(bytes)?, *self.stack.last().ok_or_else(short)?);
        match self.memo.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.memo[at].1 = top,
            Err(at) => self.memo.insert(at, (key, top)),
        }
        Ok(())
    }

    fn recall(&mut self, bytes: usize) -> Result<(), StudyError> {
        let key = self.number(bytes)?;
        let at = self.memo.binary_search_by_key(&key, |(key, _)| *key);
        let at = at.map_err(|_| StudyError::format("an earlier object", "there is none"))?;
        self.stack.push(self.memo[at].1);
        Ok(())
    }

    fn integer(&mut self, bytes: usize) -> Result<(), StudyError> {
        let number = self.number(bytes)?;
        self.push(Object::Integer(i64::from(number)))
    }

    fn number(&mut self, bytes: usize) -> Result<u32, StudyError> {
        Ok(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn byte(&mut self) -> Result<u8, StudyError> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8], StudyError> {
        let taken = self.bytes.get(self.at..self.at.saturating_add(bytes)).ok_or_else(short)?;
        self.at += bytes;
        Ok(taken)
    }

    fn line(&mut self) -> Result<(), StudyError> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(short)?;
        self.at += end + 1;
        Ok(())
    }
}

fn short() -> StudyError {
    StudyError::format("a whole pickle", "it ends too early")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_dictionaries_and_references() {
        // {'a': [1, 300], 7: <the same list>}
        let bytes = b"\x80\x02}q\x00(U\x01a]q\x01(K\x01M,\x01eK\x07h\x01u.";
        let list = Value::List(vec![Value::Integer(1), Value::Integer(300)]);
        let value = read(bytes).unwrap();
        assert_eq!(value.get(&Value::Text("a".into())), Some(&list));
        assert_eq!(value.get(&Value::Integer(7)).unwrap().integers(), Some(vec![1, 300]));
        assert_eq!(read(b"\x80\x02]").unwrap_err().to_string(), "expected a whole pickle: it ends too early");
        // A list that contains itself.
        assert!(read(b"]q\x00h\x00a.").is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b".cNKMJUXqrhj()0]}taesuRb\x85\x86\x87".to_vec())], 0..60)) {
            let _ = read(&bytes);
        }
    }
}
