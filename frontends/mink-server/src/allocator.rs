//! How the C library's allocator keeps memory: what is large goes back to the system as soon as it is free, what is small in time.
//!
//! Lives on: set up on the main thread, before there is another; small things are given back on the blocking pool.
//! Invariants: I20. Left alone, glibc raises the size from which it maps blocks by themselves up to 32 MiB as such blocks are freed, and
//! has eight heaps for each core: frames and arena chunks then lie in heaps between small things, and a node with 128 MiB to hold was
//! seen to take 430.
use std::num::NonZeroUsize;
use std::time::Duration;

/// Blocks of at least so many bytes are mapped by themselves: chunks of the arena, large frames, objects. Each costs a page fault for every
/// 4 KiB when it is written: messages of half a MiB, which come and go, would cost twice the processor time.
#[cfg(target_env = "gnu")]
const MAPPED_FROM: i32 = 1 << 20;
/// Free bytes at the top of a heap that go back to the system: as much as the largest block in it, or each such block would come with new pages.
#[cfg(target_env = "gnu")]
const TRIMMED_FROM: i32 = 1 << 20;
/// Heaps at most, for small things; each thread has a cache of its own before them.
#[cfg(target_env = "gnu")]
const HEAPS_MAX: usize = 8;

/// Free bytes in heaps that are no trouble.
#[cfg(target_env = "gnu")]
const FREE_KEPT: usize = 4 << 20;
/// Often enough for a burst to be forgotten, seldom enough for the walk to cost nothing.
const GIVEN_BACK_EVERY: Duration = Duration::from_secs(10);

/// Sets the allocator up for a node of so many shards.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no other way to set its allocator up from within")]
pub(crate) fn tune(shards: NonZeroUsize) {
    let heaps = i32::try_from(shards.get().clamp(2, HEAPS_MAX)).unwrap_or(2);
    let options = [
        (libc::M_MMAP_THRESHOLD, MAPPED_FROM),
        (libc::M_TRIM_THRESHOLD, TRIMMED_FROM),
        (libc::M_ARENA_MAX, heaps),
    ];
    for (option, value) in options {
        // SAFETY: two integers go in and one comes out; no other thread is there yet that could allocate meanwhile.
        if unsafe { libc::mallopt(option, value) } == 0 {
            tracing::warn!(
                option,
                value,
                "the allocator does not take this option: more memory than --memory may stay resident"
            );
        }
    }
}

/// Gives the free pages between small things back, if they are worth the walk.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "the C library has no other way to ask for it")]
fn give_back() {
    // SAFETY: nothing goes in, and numbers come out; the C library locks its heaps itself.
    let free = unsafe { libc::mallinfo2() }.fordblks;
    if free >= FREE_KEPT {
        // SAFETY: as above; only pages without anything in use are touched.
        unsafe { libc::malloc_trim(0) };
    }
}

#[cfg(not(target_env = "gnu"))]
fn give_back() {}

/// Gives back what a burst has left behind, now and then, for as long as the node lives.
pub(crate) async fn keep_giving_back() {
    loop {
        tokio::time::sleep(GIVEN_BACK_EVERY).await;
        if tokio::task::spawn_blocking(give_back).await.is_err() {
            return;
        }
    }
}

/// Other allocators are left as they are.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn tune(_shards: NonZeroUsize) {}
