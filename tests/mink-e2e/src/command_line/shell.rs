//! `mink sql` at a terminal: lines until a semicolon, errors that leave the shell open, lines kept for the next shell.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};

use mink_testkit::node;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::start;
use crate::setup::{Folder, until};
use crate::wire::SOON;

/// Behind Enter.
const ENTER: &str = "\r";
const CTRL_C: &str = "\x03";

/// A shell at a terminal of its own.
struct Shell {
    child: Child,
    keys: File,
    screen: Arc<Mutex<String>>,
}

impl Shell {
    fn start(addr: &str, home: &Path) -> Shell {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap();
        let side = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let side = || side.try_clone().unwrap();
        let mut command = Command::new(node::binary("mink").unwrap());
        command
            .args(["sql", "--addr", addr])
            .env("TERM", "xterm")
            .env("HOME", home)
            .env_remove("XDG_DATA_HOME");
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
        let (keys, mut shown) = (File::from(terminal.try_clone().unwrap()), File::from(terminal));
        let screen = Arc::new(Mutex::new(String::new()));
        let seen = Arc::clone(&screen);
        // It ends when the last program leaves the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Shell { child, keys, screen }
    }

    fn types(&mut self, text: &str) {
        self.keys.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until this is on the screen, and takes away what is there until then.
    async fn shows(&self, text: &str) {
        let seen = until(text, SOON, || async {
            let mut screen = self.screen.lock().unwrap();
            let end = screen.find(text)? + text.len();
            Some(screen.drain(..end).count())
        });
        assert!(seen.await > 0);
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("on the screen: {:?}", self.screen.lock());
        }
        // It has left, or the test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[tokio::test]
async fn a_shell_runs_statements_of_several_lines_and_survives_errors() {
    let folder = Folder::new();
    let mut node = start(&folder).await;
    let home = folder.join("home");
    std::fs::create_dir(&home).unwrap();
    let mut shell = Shell::start(node.flight(), &home);
    shell.shows("\\q leaves").await;
    shell.shows("mink> ").await;
    shell.types(&format!("CREATE DATABASE{ENTER}"));
    shell.shows("-> ").await;
    shell.types(&format!("sales;{ENTER}"));
    shell.shows("created database sales").await;
    shell.types(&format!("CREATE TABLE sales.a (c DECIMALS);{ENTER}"));
    shell.shows("found \"DECIMALS\"").await;
    // What is typed and not wanted any more is dropped.
    shell.shows("mink> ").await;
    shell.types(&format!("DROP DATABASE sales{ENTER}"));
    shell.shows("-> ").await;
    shell.types(CTRL_C);
    shell.shows("mink> ").await;
    shell.types(&format!("CREATE TABLE sales.a (c INT); DESCRIBE sales.a;{ENTER}"));
    shell.shows("created table sales.a").await;
    shell.shows("nullable").await;
    shell.types(&format!("\\h{ENTER}"));
    shell.shows("Statements end with ;").await;
    shell.types(&format!("\\q{ENTER}"));
    let ended = || {
        let status = shell.child.try_wait().unwrap();
        async move { status }
    };
    let status = until("the shell leaves", SOON, ended).await;
    assert_eq!(status.code(), Some(0));
    let kept = std::fs::read_to_string(home.join(".local/share/mink/sql_history")).unwrap();
    assert!(kept.contains("CREATE DATABASE") && kept.contains("DESCRIBE sales.a"), "{kept}");
    node.stop(SOON).await.unwrap();
}
