//! The one place where this crate reads clocks and random numbers.

use std::time::{Duration, Instant, SystemTime};

/// Now, for timers.
#[allow(clippy::disallowed_methods)] // an executor is a shell: it lives in real time
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Seconds since the epoch, for `TaskStatus.timestamp`.
#[allow(clippy::disallowed_methods)] // as above
pub(crate) fn timestamp() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Sixteen bytes of a random (version 4) UUID.
pub(crate) fn uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    random(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

/// The text of a UUID: lower case, 8-4-4-4-12.
pub(crate) fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
        }
    }
    text
}

/// A random time between nothing and `most`.
pub(crate) fn up_to(most: Duration) -> Duration {
    let mut bytes = [0; 4];
    random(&mut bytes);
    most.mul_f64(f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX))
}

fn random(bytes: &mut [u8]) {
    // Up to 256 bytes come whole once the machine has booted; before that this waits for it.
    while rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty()) == Err(rustix::io::Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids() {
        assert_eq!(uuid_text([0xab; 16]), "abababab-abab-abab-abab-abababababab");
        let one = uuid();
        assert_eq!((one[6] >> 4, one[8] >> 6), (4, 2));
        assert_ne!(one, uuid());
    }

    #[test]
    fn random_times_stay_in_range() {
        for _ in 0..100 {
            assert!(up_to(Duration::from_secs(2)) <= Duration::from_secs(2));
        }
    }
}
