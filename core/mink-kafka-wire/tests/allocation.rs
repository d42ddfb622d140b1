//! K-28: what a decoder allocates is bounded by the bytes it was given, whatever they say.
//!
//! Lives on: tests only; a binary of its own because it replaces the allocator.
//! Owns: the counting allocator.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test binary: a panic is its way to fail"
)]

mod samples;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::Bytes;
use mink_kafka_wire::{
    ALLOCATION_CONSTANT, ALLOCATION_FACTOR, DecodeError, FRAME_PREFIX_LEN, Fault, Message, RequestHeader,
    ResponseBody, Writer, decode_request, messages, offer,
};
use samples::{Sample, Source, with_each_api};

/// Beside the elements of arrays: the first slice of a frame makes its memory shareable, once.
const SHARING: usize = 64;

/// Frames per message and version.
const FRAMES: u64 = 400;

thread_local! {
    /// Bytes asked for on this thread, never reduced by what is freed.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(size: usize) {
    ASKED.set(ASKED.get().saturating_add(size));
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract. The counter is a
// const-initialised thread local without a destructor, so touching it neither allocates nor can it be gone.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller keeps the contract of `realloc`; the memory came from the system's allocator.
        unsafe { System.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from the system's allocator with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs `decode` on the frame and checks what it asked for.
fn bounded<T>(place: &str, frame: &Bytes, decode: impl FnOnce(Bytes) -> T) -> T {
    let allowed = ALLOCATION_FACTOR * frame.len() + ALLOCATION_CONSTANT + SHARING;
    // A frame of its own, as a listener has: unshared, so that the cost of sharing is counted too.
    let own = Bytes::from(frame.to_vec());
    let before = ASKED.get();
    let outcome = decode(own);
    let asked = ASKED.get() - before;
    assert!(
        asked <= allowed,
        "{place}: {asked} bytes asked for a frame of {}, {allowed} allowed",
        frame.len()
    );
    outcome
}

fn body_of<M: Message>(message: &M, version: i16) -> Bytes {
    let mut writer = Writer::new(M::NAME, M::is_flexible(version));
    message.encode_body(version, &mut writer).unwrap();
    writer.finish().unwrap().to_bytes().slice(FRAME_PREFIX_LEN..)
}

/// A frame that no honest peer would send: noise, noise full of small counts, or a real one with some bytes replaced.
fn hostile(source: &mut Source, real: &Bytes) -> Bytes {
    let noise = |source: &mut Source, length: usize, mask: u8| -> Bytes {
        (0..length).map(|_| source.next().to_le_bytes()[0] & mask).collect()
    };
    let length = source.below(3000);
    match source.below(7) {
        0 => noise(source, length, 0xff),
        1 => noise(source, length, 0x03),
        // A count that could be true, and elements that are as small as can be.
        2 => count_then(source, &[0], length),
        3 => count_then(source, &[1], length),
        4 => {
            let mut bytes = real.to_vec();
            let at = source.below(bytes.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte = source.next().to_le_bytes()[0];
            }
            bytes.into()
        }
        _ => {
            let mut bytes = real.to_vec();
            let counts: [&[u8]; 4] =
                [&[0x7f, 0xff, 0xff, 0xff], &[0xff, 0xff, 0xff, 0xff, 0x0f], &[0, 0, 4, 0], &[0x80, 8]];
            for _ in 0..=source.below(3) {
                let at = source.below(bytes.len() + 1);
                let until = (at + source.below(5)).min(bytes.len());
                let count = counts[source.below(counts.len())];
                bytes.splice(at..until, count.iter().copied());
            }
            bytes.extend(std::iter::repeat_n(1, source.below(2000)));
            bytes.into()
        }
    }
}

fn count_then(source: &mut Source, element: &[u8], length: usize) -> Bytes {
    let count = u32::try_from(length).unwrap();
    let mut bytes = vec![0; source.below(20)];
    if source.boolean() {
        bytes.extend(count.to_be_bytes());
    } else {
        bytes.extend([count.to_le_bytes()[0] | 0x80, (count >> 7).to_le_bytes()[0] & 0x7f]);
    }
    bytes.extend(element.iter().copied().cycle().take(length));
    bytes.into()
}

/// How often hostile frames ended how; each kind must be met, or the test would prove nothing.
#[derive(Debug, Default)]
struct Tally {
    taken: u64,
    count: u64,
    memory: u64,
    other: u64,
}

impl Tally {
    fn add<T>(&mut self, outcome: &Result<T, DecodeError>) {
        match outcome.as_ref().map_err(|error| error.fault) {
            Ok(_) => self.taken += 1,
            Err(Fault::Count { .. }) => self.count += 1,
            Err(Fault::Memory) => self.memory += 1,
            Err(_) => self.other += 1,
        }
    }
}

fn attack<M: Message + Sample>(
    tally: &mut Tally,
    decode_whole: impl Fn(i16, Bytes) -> Option<Result<(), DecodeError>>,
) {
    for version in M::VERSIONS.iter() {
        let place = format!("{} {version}", M::NAME);
        let mut source = Source::new(u64::from(version.unsigned_abs()));
        for _ in 0..FRAMES {
            let real = body_of(&M::sample(&mut source, version), version);
            let honest = bounded(&place, &real, |body| M::decode_body(version, body));
            assert!(honest.is_ok(), "{place}: a real frame is not refused");
            let frame = hostile(&mut source, &real);
            tally.add(&bounded(&place, &frame, |body| M::decode_body(version, body)));
            if let Some(outcome) = bounded(&place, &frame, |body| decode_whole(version, body)) {
                tally.add(&outcome);
            }
        }
    }
}

#[test]
fn k_28_memory_asked_for_is_at_most_16_times_the_frame_at_every_key_and_version() {
    let mut tally = Tally::default();
    macro_rules! check {
        ($name:ident, $module:ident, $request:ident, $response:ident) => {
            let key = messages::$module::$request::API_KEY;
            let decoded = offer(key).map(|offer| offer.decoded);
            attack::<messages::$module::$request>(&mut tally, |version, body| {
                decoded
                    .is_some_and(|range| range.contains(version))
                    .then(|| decode_request(key.code(), version, body).map(drop))
            });
            attack::<messages::$module::$response>(&mut tally, |version, body| {
                Some(ResponseBody::decode(key, version, body).map(drop))
            });
        };
    }
    with_each_api!(check);
    let met = [tally.taken, tally.count, tally.memory, tally.other];
    assert!(met.iter().all(|times| *times > 100), "{tally:?}");
}

#[test]
fn k_28_a_header_asks_for_no_memory_by_what_it_says() {
    let mut source = Source::new(7);
    for _ in 0..FRAMES * 10 {
        let frame =
            hostile(&mut source, &Bytes::from_static(b"\x00\x03\x00\x09\x00\x00\x01\x02\x00\x03cli\x00"));
        bounded("header", &frame, RequestHeader::decode).ok();
    }
}

#[test]
fn k_28_the_counter_counts() {
    let before = ASKED.get();
    let kept = std::hint::black_box(vec![0u8; 1000]);
    assert!(ASKED.get() - before >= kept.len());
}
