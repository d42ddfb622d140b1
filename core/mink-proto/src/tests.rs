//! I19: foreign bytes are a message or a typed error; and the bytes that the protocol file promises.

use crate::{Command, Comparison, Operator, ProtoError, Scan, Ticket, command, decode, encode, ticket};
use proptest::prelude::*;

fn scan() -> Scan {
    Scan {
        database: "sales".into(),
        table: "orders".into(),
        bucket: Some(3),
        columns: vec!["amount".into()],
        filter: vec![Comparison {
            column: "amount".into(),
            operator: Operator::Less.into(),
            value: "7".into(),
        }],
        ..Scan::default()
    }
}

#[test]
fn a_ticket_has_the_bytes_of_the_protocol_file() {
    let bytes = encode(&Ticket { ticket: Some(ticket::Ticket::Scan(scan())) });
    let expected =
        b"\x0a\x28\x0a\x05sales\x12\x06orders\x18\x03\x3a\x06amount\x42\x0d\x0a\x06amount\x10\x03\x1a\x017";
    assert_eq!(bytes, expected);
    assert_eq!(Ticket::read(&bytes), Ok(ticket::Ticket::Scan(scan())));
}

#[test]
fn a_command_that_says_nothing_is_refused() {
    assert_eq!(Command::read(&[]), Err(ProtoError::Empty { what: "Command", accepted: "append, scan" }));
}

#[test]
fn what_is_too_long_is_not_looked_at() {
    let long = vec![0xff; crate::MESSAGE_BYTES_MAX + 1];
    assert!(matches!(Ticket::read(&long), Err(ProtoError::TooLong { .. })));
}

#[test]
fn fields_of_a_later_version_are_passed_over() {
    let mut bytes = encode(&Command { command: Some(command::Command::Scan(scan())) });
    bytes.extend_from_slice(b"\xf8\x07\x01");
    assert_eq!(Command::read(&bytes), Ok(command::Command::Scan(scan())));
}

proptest! {
    #[test]
    fn any_bytes_end_in_a_value_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        let _ = Ticket::read(&bytes);
        let _ = Command::read(&bytes);
        let _ = decode::<crate::PutBatch>("PutBatch", &bytes);
    }
}
