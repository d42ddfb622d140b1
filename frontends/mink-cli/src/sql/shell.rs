//! The shell: statements are typed, over as many lines as they take, and run when they end with a semicolon.
//!
//! Lives on: the command's task; waiting for a line holds its thread, which nothing else needs.
//! Owns: the lines that are no whole statement yet.     Talks to: the terminal, the file of lines typed before.
use super::script::{Source, run_in};
use super::{Session, print};
use crate::address::AdminAddress;
use crate::failure::Failure;
use crate::output::Form;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use std::path::PathBuf;

const HELP: &str = "\
Statements end with ; and may take several lines. Ctrl-C drops what is typed, Ctrl-D or \\q leaves.
  SHOW DATABASES;   SHOW TABLES;   SHOW TABLES FROM sales;   SHOW PARTITIONS sales.orders;
  DESCRIBE sales.orders;   SHOW CREATE TABLE sales.orders;
  CREATE DATABASE sales;   USE sales;   DROP DATABASE sales;
  CREATE TABLE sales.orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(12, 2)) WITH ('bucket.num' = '4');
  ALTER TABLE sales.orders ADD COLUMN note STRING;   DROP TABLE sales.orders;
Rows go in and out with `mink write` and `mink read`. docs/sql.md has all types and options.";
/// A word that no text can end in and be complete: see [`pending`].
const SENTINEL: &str = "_";

/// What a line means once it stands behind those before it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Typed {
    /// Statements may go on.
    More,
    /// Nothing, or a comment.
    Nothing,
    /// All of it is whole.
    Statements,
    Help,
    Leave,
    /// A command of a shell, but none of ours.
    Unknown(String),
}

pub(super) async fn run(node: &AdminAddress, form: Form) -> Result<(), Failure> {
    let client = node.flight().await?;
    let about = node.describe().await?;
    let terminal = |error: ReadlineError| Failure::failed(format!("terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(terminal)?;
    let history = history();
    if let Some(file) = &history {
        // There is none yet, or it is not ours: the shell does without.
        drop(editor.load_history(file));
    }
    eprintln!(
        "node {} of cluster {}, version {}; statements end with ;, \\h helps, \\q leaves",
        about.node_id, about.cluster, about.version
    );
    let (mut text, mut session) = (String::new(), Session::default());
    loop {
        let prompt = prompt(&session, text.is_empty());
        match tokio::task::block_in_place(|| editor.readline(&prompt)) {
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
            }
            Err(ReadlineError::Interrupted) => {
                text.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(terminal(error)),
        }
        match typed(&text) {
            Typed::More => continue,
            Typed::Leave => break,
            Typed::Nothing => {}
            Typed::Help => eprintln!("{HELP}"),
            Typed::Unknown(word) => eprintln!("mink: {word} is not known; \\h helps, \\q leaves"),
            Typed::Statements => {
                let ran = run_in(&mut session, &client, Source::Typed, &text, |rows| print(form, rows));
                if let Err(failure) = ran.await {
                    eprintln!("mink: {}", failure.words());
                }
                drop(editor.add_history_entry(text.trim_end()));
            }
        }
        text.clear();
    }
    if let Some(file) = &history {
        drop(editor.save_history(file));
    }
    Ok(())
}

/// What a line is asked for with: the database in use, or the sign of a statement that goes on.
fn prompt(session: &Session, is_first: bool) -> String {
    match session.database() {
        _ if !is_first => "   -> ".to_owned(),
        Some(database) => format!("mink:{database}> "),
        None => "mink> ".to_owned(),
    }
}

/// What the lines so far mean.
fn typed(text: &str) -> Typed {
    let word = text.trim();
    match word.trim_end_matches(';') {
        "\\q" | "quit" | "exit" => return Typed::Leave,
        "\\h" | "\\?" | "help" => return Typed::Help,
        _ if word.starts_with('\\') => return Typed::Unknown(word.to_owned()),
        _ => {}
    }
    pending(text)
}

/// Whether statements are whole. A word is put behind them: it becomes a statement of its own only behind a semicolon that is no part of
/// a text, name or comment.
fn pending(text: &str) -> Typed {
    let probe = format!("{text}\n{SENTINEL}");
    let Ok(parts) = mink_ddl::split(&probe).collect::<Result<Vec<_>, _>>() else { return Typed::More };
    match parts.as_slice() {
        [only] if only.text == SENTINEL => Typed::Nothing,
        [.., last] if last.text == SENTINEL => Typed::Statements,
        _ => Typed::More,
    }
}

/// Where the lines of earlier shells are kept; none if there is no place for the user's data.
fn history() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let folder = data.or_else(|| Some(variable("HOME")?.join(".local/share")))?.join("mink");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("sql_history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_whole_at_a_semicolon_that_is_none_of_its_texts_or_comments() {
        for (text, expected) in [
            ("SHOW TABLES;\n", Typed::Statements),
            ("SHOW TABLES; -- all\n", Typed::Statements),
            ("SHOW TABLES; SHOW DATABASES;", Typed::Statements),
            ("SHOW TABLES\n", Typed::More),
            ("SHOW TABLES -- ;\n", Typed::More),
            ("SHOW TABLES; SHOW\n", Typed::More),
            ("DROP TABLE \"a;\n", Typed::More),
            ("DROP TABLE a.b /* ; ", Typed::More),
            ("COMMENT 'it''s;", Typed::More),
            ("\n", Typed::Nothing),
            (" ; -- nothing\n", Typed::Nothing),
        ] {
            assert_eq!(typed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_shell_can_be_left_and_asked() {
        for (text, expected) in [
            ("\\q\n", Typed::Leave),
            ("quit;\n", Typed::Leave),
            ("exit\n", Typed::Leave),
            ("\\h\n", Typed::Help),
            ("help\n", Typed::Help),
            ("\\dt\n", Typed::Unknown("\\dt".into())),
        ] {
            assert_eq!(typed(text), expected, "{text:?}");
        }
    }

    #[test]
    fn every_statement_of_the_help_is_one() {
        let shown =
            HELP.lines().skip(1).take_while(|line| line.starts_with("  ")).collect::<Vec<_>>().join("\n");
        let parts: Vec<_> = mink_ddl::split(&shown).collect::<Result<_, _>>().expect("whole");
        assert_eq!(parts.len(), 12);
        for part in parts {
            mink_ddl::parse(part.text, None).unwrap_or_else(|error| panic!("{}: {error}", part.text));
        }
    }
}
