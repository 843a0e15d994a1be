//! Checks seccomp profiles in Docker's JSON.

use containerizer::seccomp_filters;

/// Maximum number of instructions of a filter that the kernel accepts.
const STEPS_MAX: usize = 4096;
/// Mask of the instruction class in an opcode; the classes of jumps and of returns follow. The bare class of jumps is
/// the opcode of the unconditional jump, whose distance is the value.
const CLASS: u16 = 0x07;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;

/// Parses a profile. An accepted one becomes filters that the kernel accepts: not too long, without jumps out of them,
/// with a return at their end.
pub fn seccomp(data: &[u8]) {
    for capabilities in [0, u64::MAX] {
        let Ok(filters) = seccomp_filters(data, capabilities) else { continue };
        for filter in &filters {
            assert!((1..=STEPS_MAX).contains(&filter.len()), "{} steps", filter.len());
            for (at, step) in filter.iter().enumerate() {
                let left = filter.len() - at - 1;
                let far = match step.code & CLASS {
                    JUMP if step.code == JUMP => step.value as usize,
                    JUMP => usize::from(step.if_true.max(step.if_false)),
                    _ => 0,
                };
                assert!(far < left || step.code & CLASS == RETURN, "step {at} leads out of the filter");
            }
        }
    }
}
