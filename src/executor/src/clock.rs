//! Reads clocks and random numbers. No other module of this crate does.

use std::time::{Duration, Instant, SystemTime};

/// Returns the current time, for timers.
#[allow(clippy::disallowed_methods)] // an executor is a shell: it lives in real time
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the seconds since the epoch, for `TaskStatus.timestamp`.
#[allow(clippy::disallowed_methods)] // as above
pub(crate) fn timestamp() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Returns the 16 bytes of a new UUID.
pub(crate) fn uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    random(&mut bytes);
    base::uuid_from(bytes)
}

/// Returns a random duration from zero to `most`.
pub(crate) fn up_to(most: Duration) -> Duration {
    let mut bytes = [0; 4];
    random(&mut bytes);
    most.mul_f64(f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX))
}

fn random(bytes: &mut [u8]) {
    // Up to 256 bytes are returned at once after the machine has booted; before that this call blocks.
    while rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty()) == Err(rustix::io::Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids() {
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
