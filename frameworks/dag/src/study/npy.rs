//! Reads matrices of numbers from NumPy files. It writes none.

use super::error::StudyError;

/// Maximum number of elements of a matrix.
const LARGEST: usize = 1_000_000;

/// Returns the header of a NumPy file of version 1, and the bytes after it.
pub(super) fn header(bytes: &[u8]) -> Result<(&str, &[u8]), StudyError> {
    let not = || StudyError::format("a NumPy file of version 1", "it is none");
    let rest = bytes.strip_prefix(b"\x93NUMPY\x01").ok_or_else(not)?;
    let (Some(low), Some(high)) = (rest.get(1), rest.get(2)) else { return Err(not()) };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    let header = rest.get(3..3 + length).ok_or_else(not)?;
    Ok((std::str::from_utf8(header).map_err(|_| not())?, &rest[3 + length..]))
}

/// Reads a square matrix of 64-bit floating point numbers, row by row.
///
/// # Errors
/// The file has another type, order or shape.
pub fn square(bytes: &[u8]) -> Result<Vec<Vec<f64>>, StudyError> {
    let (header, rest) = header(bytes)?;
    let wrong = |what: &str| StudyError::format("a square matrix of '<f8', row by row", what);
    if !header.contains("'<f8'") || !header.contains("'fortran_order': False") {
        return Err(wrong("its header names another type or order"));
    }
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')'));
    let shape = shape.ok_or_else(|| wrong("its header has no shape"))?.0;
    let sides: Vec<usize> = shape.split(',').filter_map(|side| side.trim().parse().ok()).collect();
    let [rows, columns] = sides[..] else { return Err(wrong("it has not two dimensions")) };
    let count = rows.checked_mul(columns).filter(|count| rows == columns && *count <= LARGEST);
    if count.is_none_or(|count| count == 0 || rest.len() != count * 8) {
        return Err(wrong("its sides differ, or its numbers are too few or too many"));
    }
    let numbers = rest.chunks_exact(8).map(|eight| {
        f64::from_le_bytes([eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7]])
    });
    let numbers: Vec<f64> = numbers.collect();
    Ok(numbers.chunks_exact(columns).map(<[f64]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_are_read_or_refused() {
        let file = |shape: &str, numbers: &[f64]| {
            let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.bytes());
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
            bytes
        };
        assert_eq!(square(&file("(2, 2)", &[0.0, 1.0, 0.0, 0.0])).unwrap(), [[0.0, 1.0], [0.0, 0.0]]);
        for wrong in [file("(2, 1)", &[0.0, 1.0]), file("(2, 2)", &[0.0]), file("(0, 0)", &[]), b"text".to_vec()] {
            assert!(square(&wrong).is_err());
        }
    }
}
