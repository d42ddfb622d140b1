//! Finds the log lines that a test must account for: warnings, errors and panics.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: none of the product's.

/// Lines of `log` at WARN or ERROR, and panics, that contain none of the `allowed` texts; escape codes are taken out.
pub(crate) fn unexpected_lines(log: &str, allowed: &[String]) -> Vec<String> {
    log.lines()
        .map(without_escapes)
        .filter(|line| is_loud(line) && !allowed.iter().any(|text| line.contains(text.as_str())))
        .collect()
}

fn is_loud(line: &str) -> bool {
    // Text format: the level is the first word after the time, if there is a time.
    let by_word = line.split_whitespace().take(2).any(|word| word == "WARN" || word == "ERROR");
    let by_json = line.starts_with('{')
        && ["\"level\":\"WARN\"", "\"level\":\"ERROR\""].iter().any(|level| line.contains(level));
    by_word || by_json || line.contains("panicked at")
}

/// The line without terminal colour codes (ESC [ ... m).
fn without_escapes(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        rest = after.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
2026-01-01T00:00:00Z  INFO mink_node: ready
2026-01-01T00:00:01Z  WARN s3stream: put is slow number=7
\u{1b}[2m2026-01-01T00:00:02Z\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m mink_node: lost object
{\"timestamp\":\"2026\",\"level\":\"WARN\",\"message\":\"json\"}
 INFO mink: the word ERROR in a message is not a level
thread 'main' panicked at src/main.rs:1:1:
";

    #[test]
    fn warnings_errors_and_panics_are_found_in_both_formats() {
        let found = unexpected_lines(LOG, &[]);
        assert_eq!(found.len(), 4, "{found:#?}");
        assert_eq!(found[1], "2026-01-01T00:00:02Z ERROR mink_node: lost object");
        assert!(found[3].contains("panicked at"));
    }

    #[test]
    fn allowed_lines_are_left_out() {
        let allowed = ["put is slow".to_owned(), "json".to_owned()];
        assert_eq!(unexpected_lines(LOG, &allowed).len(), 2);
    }

    #[test]
    fn a_quiet_log_is_quiet() {
        assert!(unexpected_lines("INFO started\nINFO stopped\n", &[]).is_empty());
    }
}
