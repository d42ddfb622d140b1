//! Tells callgrind what to count: valgrind's client requests, which are nothing outside of it.
//!
//! Lives on: the thread that measures; callgrind collects for that one alone.
//! Invariants: outside of valgrind, and on machines other than x86-64, every request does nothing and answers 0.

/// Requests of callgrind are numbered from here: its name's letters.
const CALLGRIND: usize = ((b'C' as usize) << 24) | ((b'T' as usize) << 16);
const DUMP_STATS_AT: usize = CALLGRIND + 3;
const START_INSTRUMENTATION: usize = CALLGRIND + 4;
const STOP_INSTRUMENTATION: usize = CALLGRIND + 5;

/// Counts from here.
pub fn begin() {
    request(START_INSTRUMENTATION, 0);
}

/// Counts no more, and writes what was counted into a file of its own that bears `name`.
pub fn end(name: &str) {
    let text: Vec<u8> = name.bytes().filter(|byte| *byte != 0).chain([0]).collect();
    request(DUMP_STATS_AT, text.as_ptr() as usize);
    request(STOP_INSTRUMENTATION, 0);
}

#[cfg(target_arch = "x86_64")]
fn request(code: usize, argument: usize) -> usize {
    let arguments: [usize; 6] = [code, argument, 0, 0, 0, 0];
    let mut answer = 0_usize;
    // SAFETY: the sequence rotates a register by 128 bits in all and exchanges another with itself, so the machine's state is as before but
    // for the flags. Valgrind, which knows it, reads the six words that rax points at (and for a dump a text that ends in 0, which
    // outlives the call) and puts its answer into rdx.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(target_arch = "x86_64"))]
fn request(_code: usize, _argument: usize) -> usize {
    0
}
