//! Each refusal of the reader, one by one.
//!
//! Lives on: tests only.
//! Owns: nothing.

use super::*;

fn reader(bytes: &'static [u8], flexible: bool) -> Reader {
    Reader::new(Bytes::from_static(bytes), "Test", flexible)
}

fn fault<T: std::fmt::Debug>(outcome: Result<T, DecodeError>) -> Fault {
    outcome.unwrap_err().fault
}

#[test]
fn a_varint_of_five_bytes_is_read_and_a_longer_or_wider_one_refused() {
    assert_eq!(reader(b"\xff\xff\xff\xff\x0f", true).unsigned_varint("f").unwrap(), u32::MAX);
    assert_eq!(fault(reader(b"\xff\xff\xff\xff\x1f", true).unsigned_varint("f")), Fault::Varint);
    assert_eq!(fault(reader(b"\xff\xff\xff\xff\xff\x01", true).unsigned_varint("f")), Fault::Varint);
    let cut = Fault::Truncated { needed: 1, remaining: 0 };
    assert_eq!(fault(reader(b"\xff\xff", true).unsigned_varint("f")), cut);
}

#[test]
fn i19_text_that_no_answer_could_repeat_is_refused() {
    let text = |length: u16| {
        // One more, in seven bits each.
        let more = length + 1;
        let mut bytes = vec![u8::try_from(more & 0x7f).unwrap() | 0x80];
        bytes.push(u8::try_from(more >> 7 & 0x7f).unwrap() | 0x80);
        bytes.push(u8::try_from(more >> 14).unwrap());
        bytes.resize(3 + usize::from(length), b'x');
        Reader::new(bytes.into(), "Test", true).string("f")
    };
    assert_eq!(text(0x7fff).unwrap().as_str().len(), 0x7fff);
    assert_eq!(fault(text(0x8000)), Fault::Length { length: 0x8000 });
}

#[test]
fn k_28_an_array_of_2_31_minus_1_elements_in_a_tiny_frame_is_refused() {
    let classic = reader(b"\x7f\xff\xff\xff0123456789", false).array("f", 1, |r| r.int8("f"));
    assert_eq!(fault(classic), Fault::Count { count: 0x7fff_ffff, remaining: 10 });
    let compact = reader(b"\xff\xff\xff\xff\x0f0123456789", true).array("f", 1, |r| r.int8("f"));
    assert_eq!(fault(compact), Fault::Count { count: u32::MAX - 1, remaining: 10 });
    let tagged = reader(b"\xff\xff\xff\xff\x070123456789", true).skip_tagged_fields("f");
    assert_eq!(fault(tagged), Fault::Count { count: 0x7fff_ffff, remaining: 10 });
}

#[test]
fn k_28_a_count_is_bounded_by_the_smallest_element_not_by_the_bytes() {
    let two = b"\x00\x00\x00\x020123456";
    let outcome = reader(two, false).array("f", 4, |r| r.int32("f"));
    assert_eq!(fault(outcome), Fault::Count { count: 2, remaining: 7 });
    assert_eq!(reader(b"\x00\x00\x00\x0201234567", false).array("f", 4, |r| r.int32("f")).unwrap().len(), 2);
}

#[test]
fn k_28_elements_that_are_larger_in_memory_than_on_the_wire_use_up_the_budget() {
    // 8,000 empty strings: 8,000 bytes on the wire, 256,000 in memory, 132,128 allowed.
    let mut frame = vec![0xc1, 0x3e];
    frame.extend(std::iter::repeat_n(1u8, 8000));
    let outcome = Reader::new(frame.into(), "Test", true).array("f", 1, |r| r.string("f"));
    assert_eq!(fault(outcome), Fault::Memory);
}

#[test]
fn null_and_negative_lengths_are_told_apart() {
    assert_eq!(reader(b"\xff\xff", false).nullable_string("f").unwrap(), None);
    assert_eq!(fault(reader(b"\xff\xff", false).string("f")), Fault::Null);
    assert_eq!(fault(reader(b"\xff\xfe", false).nullable_string("f")), Fault::Length { length: -2 });
    assert_eq!(reader(b"\x00", true).nullable_bytes("f").unwrap(), None);
    assert_eq!(fault(reader(b"\x00", true).bytes("f")), Fault::Null);
    assert_eq!(
        fault(reader(b"\x80\x00\x00\x00", false).bytes("f")),
        Fault::Length { length: -2_147_483_648 }
    );
    assert_eq!(fault(reader(b"\x00", true).array("f", 1, |r| r.int8("f"))), Fault::Null);
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    assert_eq!(fault(reader(b"\x00\x02a\xc3", false).string("f")), Fault::Utf8);
}

#[test]
fn unknown_tags_are_passed_over_and_a_known_one_must_use_all_its_bytes() {
    let two_tags = b"\x02\x05\x03abc\x07\x04\x00\x00\x00\x09";
    let mut seen = None;
    let mut one = reader(two_tags, true);
    one.tagged_fields("f", |r, tag| {
        if tag == 7 {
            seen = Some(r.int32("f")?);
        }
        Ok(tag == 7)
    })
    .unwrap();
    assert_eq!(seen, Some(9));
    one.finish().unwrap();
    let short = reader(two_tags, true).tagged_fields("f", |r, tag| {
        if tag == 7 {
            r.int16("f")?;
        }
        Ok(tag == 7)
    });
    assert_eq!(fault(short), Fault::Trailing { count: 2 });
}

#[test]
fn a_known_tag_cannot_read_past_its_own_size() {
    let outcome = reader(b"\x01\x00\x02\x00\x00rest", true).tagged_fields("f", |r, _| {
        r.int64("f")?;
        Ok(true)
    });
    assert_eq!(fault(outcome), Fault::Truncated { needed: 8, remaining: 2 });
}

#[test]
fn what_it_reads_is_a_slice_of_the_frame() {
    let frame = Bytes::from(b"\x00\x00\x00\x03abc".to_vec());
    let records = Reader::new(frame.clone(), "Test", false).records("f").unwrap();
    assert_eq!(records.into_bytes().as_ptr(), frame.slice(4..).as_ptr());
}
