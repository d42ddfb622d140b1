//! Several statements, one after the other; what is said when one fails: which, where, what was done before it.
//!
//! Lives on: the command's task.
//! Invariants: nothing is done of a script with an open quote or comment; nothing is done behind a statement that failed.
use super::row::{self, Row};
use super::session::{Session, Step, tables_of};
use crate::failure::Failure;
use crate::numbers;
use mink_client::flight::{FlightClient, FlightError, FlightErrorKind};
use mink_ddl::{ParseError, Part};
use mink_types::DatabaseName;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest script, in bytes.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;
/// What is shown of a statement that failed, in characters.
const SHOWN_CHARS_MAX: usize = 100;

/// Reads a script from a file; `-` is stdin.
pub(crate) fn read_script(file: &Path) -> Result<String, Failure> {
    let is_stdin = file.as_os_str() == "-";
    let name = if is_stdin { "stdin".into() } else { file.display().to_string() };
    let mut bytes = Vec::new();
    let read = if is_stdin {
        std::io::stdin().lock().take(SCRIPT_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(SCRIPT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    if bytes.len() as u64 > SCRIPT_BYTES_MAX {
        let most = numbers::bytes(SCRIPT_BYTES_MAX);
        return Err(Failure::failed(format!("{name} has more than {most}; run it in parts")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::failed(format!("{name} is not text in UTF-8, from byte {at} on"))
    })
}

/// Where a script comes from, for what is said of its statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source<'a> {
    /// As the user typed it.
    Typed,
    /// A file of this name, or stdin.
    Named(&'a str),
    /// Made of what the user typed: to count lines and columns in it helps nobody.
    Made,
}

impl Source<'_> {
    /// What stands before the words about a place.
    fn before(self) -> String {
        match self {
            Source::Named(name) => format!("{name}, "),
            Source::Typed | Source::Made => String::new(),
        }
    }

    fn place(self, part: &Part<'_>) -> String {
        match self {
            Source::Made => String::new(),
            _ => format!("{}line {}, column {}: ", self.before(), part.line, part.column),
        }
    }

    /// A text that is at fault.
    fn fault(self, fault: &ParseError) -> String {
        match self {
            Source::Made => fault.without_numbers(),
            _ => format!("{}{fault}", self.before()),
        }
    }
}

/// Runs all statements of a script by themselves; `told` is given the rows of each.
pub(crate) async fn run(
    client: &FlightClient,
    source: Source<'_>,
    script: &str,
    told: impl FnMut(&[Row]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    run_in(&mut Session::default(), client, source, script, told).await
}

/// Runs all statements of a script behind those of a session.
pub(super) async fn run_in(
    session: &mut Session,
    client: &FlightClient,
    source: Source<'_>,
    script: &str,
    mut told: impl FnMut(&[Row]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let parts = split(source, script)?;
    for (done, part) in parts.iter().enumerate() {
        let answered = match session.step(part.text) {
            Step::Send(text) => client.sql_json(&text).await.map(|rows| row::read(&rows)),
            Step::Use(name) => client.sql_json(&tables_of(&name)).await.map(|_| Ok(session.goes_over(name))),
        };
        match answered {
            Ok(rows) => told(&rows?)?,
            Err(error) => return Err(failed(source, part, done, session.database(), &error)),
        }
    }
    Ok(())
}

/// Refuses a script with a statement that does not begin with these words.
pub(crate) fn starts_with(source: Source<'_>, script: &str, words: &[&str]) -> Result<(), Failure> {
    let other = split(source, script)?.into_iter().find(|part| {
        let found = part.text.split_whitespace().take(words.len());
        !found.map(str::to_ascii_uppercase).eq(words.iter().copied())
    });
    match other {
        Some(part) => Err(Failure::usage(format!(
            "{}{} is accepted here; `mink sql` runs any statement\n{}",
            source.place(&part),
            words.join(" "),
            shown(part.text)
        ))),
        None => Ok(()),
    }
}

/// The statements; a script without any is refused.
fn split<'a>(source: Source<'_>, script: &'a str) -> Result<Vec<Part<'a>>, Failure> {
    let parts: Vec<Part<'a>> = mink_ddl::split(script)
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::failed(format!("{}\nNothing was done.", source.fault(&error))))?;
    if parts.is_empty() {
        return Err(Failure::usage(format!("{}there is no statement in it", source.before())));
    }
    Ok(parts)
}

/// What is said of a statement that failed.
fn failed(
    source: Source<'_>,
    part: &Part<'_>,
    done: usize,
    database: Option<&DatabaseName>,
    error: &FlightError,
) -> Failure {
    let words = match mink_ddl::parse(part.text, database) {
        // The node has refused the text, and we know where it is at fault: the place is told as the script has it.
        Err(fault) if error.kind() == FlightErrorKind::Refused => source.fault(&fault.within(part)),
        _ => {
            let words = source.place(part) + Failure::flight(error).words();
            match source {
                Source::Made => words,
                _ => format!("{words}\n{}", shown(part.text)),
            }
        }
    };
    let before = match done {
        0 => String::new(),
        1 => "\nThe statement before it was carried out.".to_owned(),
        done => format!("\nThe {done} statements before it were carried out."),
    };
    Failure::Failed(words + &before)
}

/// A statement's first line, cut.
fn shown(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(SHOWN_CHARS_MAX).collect();
    let more = if cut.len() < text.len() { " ..." } else { "" };
    format!("  {cut}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_script_with_an_open_quote_is_done() {
        let Err(Failure::Failed(words)) = split(Source::Named("a.sql"), "SHOW TABLES;\nDROP TABLE \"a.b;")
        else {
            panic!("it is split")
        };
        assert!(words.starts_with("a.sql, line 2, column 12: "), "{words}");
        assert!(words.ends_with("Nothing was done."), "{words}");
    }

    #[test]
    fn a_script_without_statements_is_refused() {
        for empty in ["", " \n;; -- nothing\n"] {
            assert!(matches!(split(Source::Typed, empty), Err(Failure::Usage(_))), "{empty:?}");
        }
    }

    #[test]
    fn other_statements_than_those_a_command_is_for_are_refused() {
        let words = &["CREATE", "TABLE"];
        assert_eq!(
            starts_with(Source::Typed, "create  table a.b (c INT);CREATE\nTABLE a.d (c INT)", words),
            Ok(())
        );
        let Err(Failure::Usage(words)) =
            starts_with(Source::Typed, "CREATE TABLE a.b (c INT);\n DROP TABLE a.b", words)
        else {
            panic!("it is taken")
        };
        assert!(words.contains("line 2, column 2: CREATE TABLE is accepted here"), "{words}");
        assert!(words.ends_with("\n  DROP TABLE a.b"), "{words}");
    }

    #[test]
    fn no_place_is_told_in_a_text_that_the_user_did_not_write() {
        let made = "ALTER TABLE \"a\".\"b\" ADD COLUM c INT";
        let fault = mink_ddl::parse(made, None).expect_err("no column");
        assert!(Source::Typed.fault(&fault).starts_with("line 1, column "));
        let words = Source::Made.fault(&fault);
        assert!(words.starts_with(&fault.message) && !words.contains("line 1"), "{words}");
        assert!(words.contains(&format!("\n{made}\n")), "{words}");
        let Err(Failure::Usage(words)) = starts_with(Source::Made, "DROP TABLE a.b", &["ALTER", "TABLE"])
        else {
            panic!("it is taken")
        };
        assert!(words.starts_with("ALTER TABLE is accepted here"), "{words}");
    }

    #[test]
    fn of_a_long_statement_the_beginning_is_shown() {
        assert_eq!(shown("SHOW TABLES"), "  SHOW TABLES");
        assert_eq!(shown("CREATE TABLE a.b (\n  c INT\n)"), "  CREATE TABLE a.b ( ...");
        assert!(shown(&"x".repeat(5000)).len() < 120);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_by_its_name() {
        let Err(Failure::Failed(words)) = read_script(Path::new("/nowhere/at.sql")) else {
            panic!("it is read")
        };
        assert!(words.starts_with("/nowhere/at.sql: "), "{words}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"SHOW \xff").unwrap();
        let Err(Failure::Failed(words)) = read_script(file.path()) else { panic!("it is read") };
        assert!(words.contains("from byte 5 on"), "{words}");
    }
}
