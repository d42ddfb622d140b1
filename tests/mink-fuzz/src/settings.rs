//! The server's configuration file: its text as `mink serve --config` reads it, and each form of value by itself.
//!
//! Lives on: anywhere; settings that are left out are filled in from the machine.
//! Invariants: I19: whatever the text, it is taken or refused in words. Nothing is opened: neither directory nor port nor store.
use mink_object::{OpenContext, open};
use mink_rt::{EpollRuntime, Runtime as _, RuntimeKind, ServiceConfig};
use mink_server::{Bytes, HostPort, Listen, Settings, SettingsError, duration, parse_text};
use std::fmt::Display;
use std::sync::LazyLock;

/// What a store is opened with; nothing is sent.
static CONTEXT: LazyLock<OpenContext> = LazyLock::new(|| {
    let runtime = EpollRuntime::start(ServiceConfig::default()).expect("threads can be started");
    let context = OpenContext::new(runtime.service());
    // It lasts as long as the process, as what it is for does.
    std::mem::forget(runtime);
    context
});

#[expect(clippy::needless_pass_by_value, reason = "all targets have one shape")]
pub(crate) fn settings(input: Vec<u8>) {
    // A file that is no text is refused by the reading of it.
    let Ok(text) = str::from_utf8(&input) else { return };
    in_words(file(text));
    value(text.trim_end_matches('\n'));
}

/// The whole of a file, and what a start makes of it before it opens anything.
fn file(text: &str) -> Result<(), SettingsError> {
    let settings = Settings::resolve(parse_text("mink.toml", text)?)?;
    for needs_put_budget in [false, true] {
        in_words(settings.wal(needs_put_budget).check());
    }
    std::hint::black_box(settings.compaction());
    store(&settings.storage);
    settings.wal_storage.as_deref().map(store);
    Ok(())
}

/// One value in each form that a key may have.
fn value(text: &str) {
    if let Some(bytes) = in_words(text.parse::<Bytes>()) {
        assert_eq!(bytes.to_string().parse(), Ok(bytes), "a size is told as it can be typed");
    }
    in_words(duration(text));
    in_words(text.parse::<Listen>());
    in_words(text.parse::<HostPort>());
    in_words(text.parse::<RuntimeKind>());
    store(text);
}

/// Whether a URL names a store; one of files is made when it is opened, so that is left out.
fn store(url: &str) {
    if !url.starts_with("file://") {
        in_words(open(url, &CONTEXT));
    }
}

fn in_words<T, E: Display>(result: Result<T, E>) -> Option<T> {
    match result {
        Ok(taken) => Some(taken),
        Err(refused) => {
            assert!(!refused.to_string().trim().is_empty(), "refused without a word");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn mutations_begin_with_files_that_are_taken_and_with_one_that_is_not() {
        let seed = |name: &str| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/settings").join(name);
            file(&std::fs::read_to_string(path).expect("there"))
        };
        for sound in ["small.toml", "tables.toml", "limits.toml"] {
            seed(sound).unwrap_or_else(|refused| panic!("{sound}: {refused}"));
        }
        let refused = seed("refused.toml").expect_err("no date is a time").to_string();
        assert!(refused.contains("lease-ttl"), "{refused}");
    }
}
