//! Sets the capabilities and system call filters of a new process.
//!
//! All of it runs in the child and does not allocate.

use super::Step;
use crate::isolation::{Capabilities, FilterStep};

/// `struct __user_cap_header_struct`
#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`, of which version 3 has two.
#[repr(C)]
struct Data {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

const VERSION_3: u32 = 0x2008_0522;
const PR_CAP_AMBIENT: i32 = 47;
const PR_CAP_AMBIENT_RAISE: libc::c_ulong = 2;
const PR_CAP_AMBIENT_CLEAR_ALL: libc::c_ulong = 4;
const CAPABILITIES: u64 = 64;

fn check(result: i64) -> Result<(), Step> {
    if result < 0 { Err(Step::Capabilities) } else { Ok(()) }
}

/// Before the user is switched: drops capabilities from the bounding set, and keeps the others over the switch.
///
/// # Safety
/// As `run_stage`.
pub(super) unsafe fn before_user(wanted: &Capabilities) -> Result<(), Step> {
    // SAFETY: prctl with numbers only.
    unsafe {
        for capability in (0..CAPABILITIES).filter(|number| wanted.bounding >> number & 1 == 0) {
            if libc::prctl(libc::PR_CAPBSET_READ, capability) == 1 {
                check(libc::prctl(libc::PR_CAPBSET_DROP, capability).into())?;
            }
        }
        if wanted.effective.is_some() {
            check(libc::prctl(libc::PR_SET_KEEPCAPS, 1).into())?;
        }
    }
    Ok(())
}

/// After the user is switched: sets the effective, permitted, inheritable and ambient capabilities.
///
/// # Safety
/// As `run_stage`.
pub(super) unsafe fn after_user(wanted: &Capabilities) -> Result<(), Step> {
    let Some(effective) = wanted.effective else { return Ok(()) };
    let half = |shift: u32| {
        let bits = (effective >> shift) as u32;
        Data { effective: bits, permitted: bits, inheritable: bits }
    };
    let header = Header { version: VERSION_3, pid: 0 };
    let data = [half(0), half(32)];
    // SAFETY: the structures have the kernel's layout; prctl takes numbers only.
    unsafe {
        check(libc::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0).into())?;
        check(libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()))?;
        for capability in (0..CAPABILITIES).filter(|number| effective >> number & 1 == 1) {
            check(libc::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0).into())?;
        }
    }
    Ok(())
}

/// `struct sock_fprog`
#[repr(C)]
struct FilterProgram {
    length: u16,
    steps: *const FilterStep,
}

/// Installs the filters: all of them check every later system call.
///
/// # Safety
/// As `run_stage`.
pub(super) unsafe fn filter(programs: &[std::sync::Arc<[FilterStep]>]) -> Result<(), Step> {
    for steps in programs {
        let Ok(length) = u16::try_from(steps.len()) else { return Err(Step::Seccomp) };
        let program = FilterProgram { length, steps: steps.as_ptr() };
        const SET_MODE_FILTER: libc::c_ulong = 1;
        // SAFETY: the program's layout is the kernel's, and its steps are kept by the parent.
        let set = unsafe { libc::syscall(libc::SYS_seccomp, SET_MODE_FILTER, 0_u32, &raw const program) };
        if set < 0 {
            return Err(Step::Seccomp);
        }
    }
    Ok(())
}
