//! An allocator that knows what a decoder holds, and refuses what no input may make it ask for.
//!
//! Lives on: the thread that runs a target.
//! Owns: the counts.
//! Invariants: I19, K-28: what a target holds beyond its budget is refused, which ends the process: a count from outside has sized an
//! allocation.
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes held, and the most that were.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
    static BUDGET: Cell<isize> = const { Cell::new(isize::MAX) };
}

/// The system's allocator under a budget.
#[derive(Debug)]
pub struct Capped;

fn grow(size: usize) -> bool {
    let held = HELD.get().saturating_add(size.try_into().unwrap_or(isize::MAX));
    if held > BUDGET.get() {
        return false;
    }
    HELD.set(held);
    MOST.set(MOST.get().max(held));
    true
}

fn shrink(size: usize) {
    HELD.set(HELD.get().saturating_sub(size.try_into().unwrap_or(isize::MAX)));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract, or refused by null, which the contract
// allows. The counts are const-initialised thread locals without a destructor: touching them neither allocates nor can they be gone.
unsafe impl GlobalAlloc for Capped {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !grow(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !grow(size) {
            return std::ptr::null_mut();
        }
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `realloc`; the memory came from the system's allocator.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`; the memory came from the system's allocator.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// Runs `body`, which may hold `budget` bytes more than is held now; gives the most that it held.
pub(crate) fn within(budget: usize, body: impl FnOnce()) -> usize {
    let before = HELD.get();
    MOST.set(before);
    BUDGET.set(before.saturating_add(budget.try_into().unwrap_or(isize::MAX)));
    body();
    BUDGET.set(isize::MAX);
    usize::try_from(MOST.get() - before).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_28_what_is_held_is_counted_and_more_than_the_budget_is_refused() {
        let most = within(1 << 20, || drop(std::hint::black_box(vec![1_u8; 100_000])));
        assert!((100_000..200_000).contains(&most), "{most}");
        within(1 << 20, || {
            let mut asked: Vec<u8> = Vec::new();
            assert!(asked.try_reserve_exact(2 << 20).is_err());
        });
    }
}
