//! The memory allocator of this program: mimalloc, called without an alignment wherever that is correct.
//!
//! The crate `mimalloc` passes an alignment each time, which takes three times as many instructions. It is in this
//! crate because it needs unsafe code.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use libmimalloc_sys as ffi;

/// mimalloc as the global allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory;

/// The alignment that mimalloc guarantees for every block, however small: one word.
const WORD: usize = size_of::<usize>();

/// Returns whether every block of mimalloc has the alignment of the layout.
fn is_plain(layout: Layout) -> bool {
    layout.align() <= WORD
}

// SAFETY: each call passes the allocator's contract on to mimalloc unchanged. Its blocks are aligned to a word, or to
// the requested alignment where that is larger; they have at least the requested size; it returns null without memory;
// and it frees and reallocates blocks of any of its functions.
unsafe impl GlobalAlloc for Memory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) {
            // SAFETY: the function has no preconditions.
            return unsafe { ffi::mi_malloc(layout.size()) }.cast();
        }
        // SAFETY: a layout's alignment is a power of two, which is the only precondition.
        unsafe { ffi::mi_malloc_aligned(layout.size(), layout.align()) }.cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_plain(layout) {
            // SAFETY: the function has no preconditions.
            return unsafe { ffi::mi_zalloc(layout.size()) }.cast();
        }
        // SAFETY: a layout's alignment is a power of two, which is the only precondition.
        unsafe { ffi::mi_zalloc_aligned(layout.size(), layout.align()) }.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller guarantees that the block came from this allocator, so from mimalloc, and that it is not
        // used any more.
        unsafe { ffi::mi_free(block.cast::<c_void>()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_plain(layout) {
            // SAFETY: the caller guarantees that the block came from this allocator, so from mimalloc.
            return unsafe { ffi::mi_realloc(block.cast::<c_void>(), size) }.cast();
        }
        // SAFETY: as before, and a layout's alignment is a power of two.
        unsafe { ffi::mi_realloc_aligned(block.cast::<c_void>(), size, layout.align()) }.cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_whole_and_keep_what_is_in_them() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in [1, 3, 7, 8, 9, 24, 40, 100, 1000, 5000, 100_000] {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the size is not zero; each block is written and read within its size, and freed once, with
                // the layout that it has by then.
                unsafe {
                    let block = Memory.alloc(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{layout:?}");
                    block.write_bytes(7, size);
                    let block = Memory.realloc(block, layout, 2 * size);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{layout:?}");
                    assert!(std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 7), "{layout:?}");
                    Memory.dealloc(block, Layout::from_size_align(2 * size, align).unwrap());
                    let block = Memory.alloc_zeroed(layout);
                    assert!(!block.is_null() && block.addr().is_multiple_of(align), "{layout:?}");
                    assert!(std::slice::from_raw_parts(block, size).iter().all(|byte| *byte == 0), "{layout:?}");
                    Memory.dealloc(block, layout);
                }
            }
        }
    }
}
