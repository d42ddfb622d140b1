//! What the first bytes of a file tell of it, for one that is given as something else.
//!
//! Lives on: anywhere (pure).
//! Invariants: what may be a text is never taken for something else.
use super::FileForm;

/// What a file is, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Magic {
    Parquet,
    ArrowFile,
    /// A stream of Arrow has the mark of its first message.
    ArrowStream,
    Gzip,
    Zstd,
    Utf16,
    /// Text, or what nobody knows.
    Other,
}

impl Magic {
    /// Bytes that tell it.
    pub(super) const BYTES: usize = 7;

    pub(super) fn of(begin: &[u8]) -> Magic {
        // A text may begin with these letters, and does not go on as the files do.
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        let is = |magic: &[u8]| {
            begin.strip_prefix(magic).and_then(<[u8]>::first).is_some_and(|next| !is_text(next))
        };
        match begin {
            _ if is(b"PAR1") => Magic::Parquet,
            _ if is(b"ARROW1") => Magic::ArrowFile,
            [0xff, 0xff, 0xff, 0xff, ..] => Magic::ArrowStream,
            [0x1f, 0x8b, ..] => Magic::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Magic::Zstd,
            [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Magic::Utf16,
            _ => Magic::Other,
        }
    }

    /// What to do with a file that is given as `form` and is surely something else.
    pub(super) fn instead_of(self, form: FileForm) -> Option<&'static str> {
        match (self, form) {
            (Magic::Other, _)
            | (Magic::Parquet, FileForm::Parquet)
            | (Magic::ArrowFile | Magic::ArrowStream, FileForm::Arrow) => None,
            (Magic::Parquet, _) => Some("it is a Parquet file; say --format parquet"),
            (Magic::ArrowFile, _) => Some("it is a file of Arrow; say --format arrow"),
            (Magic::ArrowStream, _) => Some("it is a stream of Arrow; say --format arrow"),
            (Magic::Gzip, _) => Some(
                "it is compressed by gzip; inflate it into stdin (`gzip -dc FILE | mink write ...`) and say --format",
            ),
            (Magic::Zstd, _) => Some(
                "it is compressed by zstd; inflate it into stdin (`zstd -dc FILE | mink write ...`) and say --format",
            ),
            (Magic::Utf16, _) => Some(
                "it is UTF-16; write it as UTF-8 into stdin (`iconv -f UTF-16 -t UTF-8 FILE | mink write ...`) and say --format",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes_and_texts_are_no_files() {
        for (begin, found) in [
            (&b"PAR1\x15\x04\x15"[..], Magic::Parquet),
            (b"ARROW1\0\0", Magic::ArrowFile),
            (b"\xff\xff\xff\xff\x10\0\0", Magic::ArrowStream),
            (b"\x1f\x8b\x08", Magic::Gzip),
            (b"\x28\xb5\x2f\xfd", Magic::Zstd),
            (b"\xff\xfea\0", Magic::Utf16),
            (b"PAR1,x\n", Magic::Other),
            (b"PAR1\n1\n", Magic::Other),
            (b"ARROW1\n", Magic::Other),
            (b"PAR1", Magic::Other),
            (b"{\"a\":1}", Magic::Other),
            (b"\xef\xbb\xbfa", Magic::Other),
            (b"", Magic::Other),
        ] {
            assert_eq!(Magic::of(begin), found, "{begin:?}");
        }
    }

    #[test]
    fn what_is_given_as_something_else_is_told_with_the_format_to_say() {
        let say = |magic: Magic, form| magic.instead_of(form).unwrap_or_default();
        assert!(say(Magic::Parquet, FileForm::Csv).contains("--format parquet"));
        assert!(say(Magic::Parquet, FileForm::Arrow).contains("--format parquet"));
        assert!(say(Magic::ArrowStream, FileForm::Json).contains("--format arrow"));
        assert!(say(Magic::Gzip, FileForm::Parquet).contains("gzip -dc"));
        for (magic, form) in [
            (Magic::Parquet, FileForm::Parquet),
            (Magic::ArrowFile, FileForm::Arrow),
            (Magic::ArrowStream, FileForm::Arrow),
            (Magic::Other, FileForm::Parquet),
        ] {
            assert_eq!(magic.instead_of(form), None);
        }
    }
}
