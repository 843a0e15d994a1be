//! Applies differences in Subversion's format `svndiff0`, in which the state store writes `Operation.Diff`.
//!
//! A difference is a list of windows. Each generates a piece of the target from a part of the source, the target so
//! far, and new bytes. Compressed versions of the format are refused: Mesos writes none.

/// Maximum length of the result in bytes.
const TARGET_MAX: usize = 256 << 20;

/// Reasons why a difference cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiffError {
    /// The difference has another format.
    #[error("the difference is not in the format svndiff0")]
    Format,
    /// The difference is cut off, or refers to missing bytes.
    #[error("the difference is invalid or does not belong to the value before it")]
    Invalid,
    /// The result is too long.
    #[error("the difference makes more than {TARGET_MAX} bytes")]
    TooLarge,
}

/// Applies `diff` to `source`, and returns the result.
pub(crate) fn apply(source: &[u8], diff: &[u8]) -> Result<Vec<u8>, DiffError> {
    let mut rest = diff.strip_prefix(b"SVN\0").ok_or(DiffError::Format)?;
    let mut target = Vec::new();
    while !rest.is_empty() {
        window(source, &mut rest, &mut target)?;
    }
    Ok(target)
}

/// Applies one window of a difference.
fn window(source: &[u8], rest: &mut &[u8], target: &mut Vec<u8>) -> Result<(), DiffError> {
    let mut header = [0; 5];
    for field in &mut header {
        *field = number(rest).ok_or(DiffError::Invalid)?;
    }
    let [offset, from_source, made, instructions, new] = header;
    if target.len().checked_add(made).is_none_or(|length| length > TARGET_MAX) {
        return Err(DiffError::TooLarge);
    }
    let view = part(source, offset, from_source)?;
    let mut instructions = take(rest, instructions)?;
    let mut new = take(rest, new)?;
    let (begin, end) = (target.len(), target.len() + made);
    while !instructions.is_empty() {
        let (kind, length) = instruction(&mut instructions).ok_or(DiffError::Invalid)?;
        if length == 0 || length > end - target.len() {
            return Err(DiffError::Invalid);
        }
        match kind {
            0 => {
                let at = number(&mut instructions).ok_or(DiffError::Invalid)?;
                target.extend_from_slice(part(view, at, length)?);
            }
            1 => {
                let at = number(&mut instructions).ok_or(DiffError::Invalid)?;
                // The copied bytes may overlap with those that are written: then they repeat.
                for place in 0..length {
                    let from = begin.checked_add(at).and_then(|from| from.checked_add(place));
                    let byte = from.and_then(|from| target.get(from)).copied().ok_or(DiffError::Invalid)?;
                    target.push(byte);
                }
            }
            2 => target.extend_from_slice(take(&mut new, length)?),
            _ => return Err(DiffError::Invalid),
        }
    }
    if target.len() == end && new.is_empty() { Ok(()) } else { Err(DiffError::Invalid) }
}

/// Reads an instruction: its kind, and the number of bytes to copy.
fn instruction(bytes: &mut &[u8]) -> Option<(u8, usize)> {
    let (first, rest) = bytes.split_first()?;
    *bytes = rest;
    let length = match first & 0x3f {
        0 => number(bytes)?,
        short => usize::from(short),
    };
    Some((first >> 6, length))
}

/// Reads a number in groups of seven bits, the highest first.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    let mut number: usize = 0;
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number = number.checked_mul(128)?.checked_add(usize::from(first & 0x7f))?;
        if *first < 0x80 {
            return Some(number);
        }
    }
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Result<&'b [u8], DiffError> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(DiffError::Invalid)?;
    *bytes = rest;
    Ok(taken)
}

fn part(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], DiffError> {
    bytes.get(at..).and_then(|rest| rest.get(..length)).ok_or(DiffError::Invalid)
}

#[cfg(test)]
mod tests {
    //! Invariants of differences, checked by proptest: no bytes make it panic, and a result is as long as the windows
    //! say.

    use proptest::prelude::*;

    use super::*;

    /// From Subversion's description of the format: `aaaabbbbcccc` becomes `aaaaccccdddddddd`.
    const DIFF: &[u8] = b"SVN\0\x00\x0c\x10\x07\x01\x04\x00\x04\x08\x81\x47\x08d";

    #[test]
    fn a_window_copies_from_the_source_from_itself_and_from_new_bytes() {
        assert_eq!(apply(b"aaaabbbbcccc", DIFF).unwrap(), b"aaaaccccdddddddd");
    }

    #[test]
    fn a_difference_that_does_not_fit_is_refused() {
        assert_eq!(apply(b"aaaabbbb", DIFF), Err(DiffError::Invalid), "the source is too short");
        assert_eq!(apply(b"aaaabbbbcccc", &DIFF[..DIFF.len() - 1]), Err(DiffError::Invalid));
        assert_eq!(apply(b"", b"SVN\x01"), Err(DiffError::Format));
        assert_eq!(apply(b"", b"SVN\0\x00\x00\xff\xff\xff\xff\x7f\x00\x00"), Err(DiffError::TooLarge));
        assert_eq!(apply(b"x", b"SVN\0").unwrap(), b"");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(source in any::<Vec<u8>>(), diff in any::<Vec<u8>>()) {
            let _ = apply(&source, &[b"SVN\0".as_slice(), &diff].concat());
        }

        #[test]
        fn flipped_bytes_do_not_panic(at in 4..DIFF.len(), byte in any::<u8>()) {
            let mut diff = DIFF.to_vec();
            diff[at] = byte;
            if let Ok(target) = apply(b"aaaabbbbcccc", &diff) {
                prop_assert_eq!(target.len(), usize::from(diff[6]));
            }
        }
    }
}
