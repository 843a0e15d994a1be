//! Writes strings and numbers in Mesos's form.

/// Appends a quoted string. Only quotes, backslashes and bytes below 0x20 are escaped.
#[inline]
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    string_bytes(out, text.as_bytes());
}

/// Appends a quoted string of bytes that need not be UTF-8.
#[inline]
pub(crate) fn string_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 3);
    out.push(b'"');
    if clean(bytes) {
        out.extend_from_slice(bytes);
    } else {
        escaped(out, bytes);
    }
    out.push(b'"');
}

/// Returns whether no byte needs an escape. Whole blocks are tested at once, which the compiler turns into vector code.
#[inline]
fn clean(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<16>();
    let plain = |block: &[u8; 16]| !block.iter().fold(false, |bad, b| bad | special(*b));
    blocks.iter().all(plain) && !rest.iter().any(|b| special(*b))
}

#[inline]
fn special(b: u8) -> bool {
    b < 0x20 || b == b'"' || b == b'\\'
}

#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for b in bytes {
        let short = match b {
            b'"' | b'\\' => *b,
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => {
                let (high, low) = (HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                continue;
            }
            _ => {
                out.push(*b);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
}

/// Appends an integer.
#[inline]
pub(crate) fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends the shortest text that parses to the same double, always with a point or an exponent: `1.0`, `0.1`, `1e21`.
/// Infinities are strings.
pub(crate) fn double(out: &mut Vec<u8>, value: f64) {
    let mut buffer = ryu::Buffer::new();
    let text = match value {
        f64::INFINITY => "\"Infinity\"",
        f64::NEG_INFINITY => "\"-Infinity\"",
        _ if value.is_nan() => "NaN",
        _ => buffer.format_finite(value),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Ends an object or array whose members are each followed by a comma.
#[inline]
pub(crate) fn close(out: &mut Vec<u8>, bracket: u8) {
    match out.last_mut() {
        Some(last) if *last == b',' => *last = bracket,
        _ => out.push(bracket),
    }
}
