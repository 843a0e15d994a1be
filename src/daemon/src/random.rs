//! The live source of randomness: that of the operating system.

/// Returns unpredictable bytes.
///
/// If the system has none (which does not happen on a running Linux), the process aborts, because it cannot generate
/// safe ids.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if let Err(error) = getrandom::fill(&mut bytes) {
        tracing::error!("cannot read random bytes: {error}");
        std::process::abort();
    }
    bytes
}

/// Generates a UUID, as text in lower case.
pub fn uuid_text() -> String {
    base::uuid_text(base::uuid_from(bytes()))
}
