//! A file or stdin as bytes, counted while they are read.
//!
//! Lives on: the reading thread, but for opening.
//! Invariants: what must be a file and comes by stdin is held in a file without a name, up to `SPOOLED_BYTES_MAX`.
use super::FileForm;
use super::magic::Magic;
use super::portion::{Progress, Stop};
use crate::failure::Failure;
use crate::numbers;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes that are read at once.
const FILE_BUFFER_BYTES: usize = 1 << 20;
/// Less than what a portion takes: who writes slowly is not kept waiting for more.
const STDIN_BUFFER_BYTES: usize = 64 << 10;
/// Longest line, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 64 << 20;
/// Most of stdin that is held in a file.
const SPOOLED_BYTES_MAX: u64 = 4 << 30;

/// Whether the name means stdin.
pub(super) fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// What is read.
#[derive(Debug)]
pub(super) enum Source {
    File(File),
    Stdin,
}

/// Bytes, read in large pieces.
pub(super) type Bytes = BufReader<Box<dyn Read + Send>>;

impl Source {
    pub(super) fn open(file: &Path) -> Result<Source, Failure> {
        if is_stdin(file) {
            return Ok(Source::Stdin);
        }
        let opened = File::open(file);
        let cannot = |error| Failure::failed(format!("cannot read {}: {error}", file.display()));
        opened.map(Source::File).map_err(cannot)
    }

    /// Its bytes from first to last, which count as progress.
    pub(super) fn bytes(self, progress: &Progress) -> Bytes {
        let (inner, buffer_bytes): (Box<dyn Read + Send>, _) = match self {
            Source::File(file) => {
                progress.set_total(file.metadata().map_or(0, |data| data.len()));
                (Box::new(file), FILE_BUFFER_BYTES)
            }
            Source::Stdin => (Box::new(io::stdin()), STDIN_BUFFER_BYTES),
        };
        BufReader::with_capacity(buffer_bytes, Box::new(Counted { inner, progress: progress.clone() }))
    }
}

/// A file with what these bytes, which are of stdin, and the rest of it hold.
pub(super) fn spool(mut bytes: impl Read) -> Result<File, Stop> {
    let cannot = |error: io::Error| format!("cannot keep stdin in a file: {error}; write it to a file first");
    let mut file = tempfile::tempfile().map_err(cannot)?;
    let copied = io::copy(&mut bytes.by_ref().take(SPOOLED_BYTES_MAX + 1), &mut file).map_err(cannot)?;
    if copied > SPOOLED_BYTES_MAX {
        return Err(Stop::Wrong(format!(
            "stdin has more than the {} that are kept of what is no stream; write it to a file first",
            numbers::bytes(SPOOLED_BYTES_MAX)
        )));
    }
    file.seek(SeekFrom::Start(0)).map_err(cannot)?;
    Ok(file)
}

/// Tells how many bytes have come.
struct Counted {
    inner: Box<dyn Read + Send>,
    progress: Progress,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.add(read as u64);
        Ok(read)
    }
}

/// An error of reading, in words.
pub(super) fn cannot_read(error: &io::Error) -> Stop {
    Stop::Wrong(format!("cannot read further: {error}"))
}

/// Looks at the beginning of a text: what is none is refused with what to do, and a byte order mark is passed over.
pub(super) fn begin_text(bytes: &mut Bytes, form: FileForm) -> Result<(), Stop> {
    const MARK: &[u8] = "\u{feff}".as_bytes();
    // What comes in pieces is no longer at first than what the smallest pipe gives at once.
    let begin = bytes.fill_buf().map_err(|error| cannot_read(&error))?;
    if let Some(what) = Magic::of(begin).instead_of(form) {
        return Err(Stop::Wrong(what.into()));
    }
    if begin.starts_with(MARK) {
        bytes.consume(MARK.len());
    }
    Ok(())
}

/// Reads the line of this number without its end; false at the end of the input.
pub(super) fn next_line(bytes: &mut Bytes, line: &mut Vec<u8>, number: u64) -> Result<bool, Stop> {
    line.clear();
    let mut limited = bytes.by_ref().take(LINE_BYTES_MAX as u64 + 1);
    let read = limited.read_until(b'\n', line).map_err(|error| cannot_read(&error))?;
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > LINE_BYTES_MAX {
        let most = numbers::bytes(LINE_BYTES_MAX as u64);
        return Err(Stop::Wrong(format!("line {number}: longer than {most}; a line is one row")));
    }
    Ok(read > 0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Bytes as if they came from a file.
    pub(crate) fn bytes(text: &[u8]) -> Bytes {
        BufReader::with_capacity(7, Box::new(io::Cursor::new(text.to_vec())))
    }

    #[test]
    fn lines_end_with_a_newline_or_the_input() {
        let mut input = bytes(b"one\n\nthree");
        let (mut line, mut found) = (Vec::new(), Vec::new());
        while next_line(&mut input, &mut line, 1).expect("lines") {
            found.push(String::from_utf8(line.clone()).expect("text"));
        }
        assert_eq!(found, ["one", "", "three"]);
    }

    #[test]
    fn a_text_is_read_from_behind_its_mark_and_what_is_no_text_is_not_read() {
        let first_line = |text: &[u8]| {
            let (mut input, mut line) = (bytes(text), Vec::new());
            begin_text(&mut input, FileForm::Json)?;
            next_line(&mut input, &mut line, 1).map(|_| line)
        };
        for text in ["\u{feff}a\n", "a\n\u{feff}b"] {
            assert_eq!(first_line(text.as_bytes()).expect("text"), b"a");
        }
        for (file, word) in [(&b"PAR1\x15\x00"[..], "--format parquet"), (b"ARROW1\0\0", "--format arrow")] {
            let Err(Stop::Wrong(what)) = first_line(file) else { panic!("{file:?} is no text") };
            assert!(what.contains(word), "{what}");
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let endless: Box<dyn Read + Send> = Box::new(io::repeat(b'x'));
        let mut input = BufReader::with_capacity(FILE_BUFFER_BYTES, endless);
        let Err(Stop::Wrong(what)) = next_line(&mut input, &mut Vec::new(), 7) else {
            panic!("it has no end")
        };
        assert!(what.starts_with("line 7: longer than 64.0 MiB"), "{what}");
    }

    #[test]
    fn what_is_read_counts_as_progress() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        io::Write::write_all(&mut file, b"0123456789").expect("written");
        let progress = Progress::default();
        let mut input = Source::open(file.path()).expect("it is there").bytes(&progress);
        assert_eq!(progress.get(), (0, 10));
        io::copy(&mut input, &mut io::sink()).expect("read");
        assert_eq!(progress.get(), (10, 10));
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_name() {
        let error = Source::open(Path::new("/no/such/file.csv")).expect_err("nothing is there");
        assert!(error.words().contains("/no/such/file.csv"), "{error:?}");
    }

    #[test]
    fn stdin_is_kept_whole_and_read_from_its_beginning() {
        let mut file = spool(&b"PAR1 and more"[..]).expect("it is short");
        let mut found = String::new();
        file.read_to_string(&mut found).expect("read");
        assert_eq!(found, "PAR1 and more");
    }
}
