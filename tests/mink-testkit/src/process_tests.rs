//! Children of the shell show what a process handle does.

use std::os::unix::process::ExitStatusExt as _;

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn shell(script: &str) -> Launch {
    Launch::new("shell", "/bin/sh").arg("-c").arg(script)
}

async fn until(mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition did not come true");
        tokio::time::sleep(POLL).await;
    }
}

#[tokio::test]
async fn output_is_kept_apart_and_lines_are_offered_once() {
    let mut child =
        shell("echo one; echo two >&2; echo three; echo $GREETING").env("GREETING", "hello").start().unwrap();
    assert_eq!(child.wait_for_text(Output::Stdout, SOON, "e").await.unwrap(), "one");
    assert_eq!(child.wait_for_text(Output::Stdout, SOON, "e").await.unwrap(), "three");
    assert_eq!(child.wait_for_text(Output::Stderr, SOON, "t").await.unwrap(), "two");
    assert!(child.wait(SOON).await.unwrap().success());
    assert_eq!(child.text(Output::Stdout).unwrap(), "one\nthree\nhello\n");
    assert_eq!(child.text(Output::Stderr).unwrap(), "two\n");
}

#[tokio::test]
async fn a_line_counts_once_it_is_whole() {
    let mut child =
        shell("printf rea; read -r _ < /dev/null; sleep 0.1; echo dy; exec sleep 60").start().unwrap();
    assert_eq!(child.wait_for_text(Output::Stdout, SOON, "rea").await.unwrap(), "ready");
}

#[tokio::test]
async fn a_child_that_ends_without_the_line_is_reported_with_its_logs() {
    let mut child = shell("echo reason >&2; exit 3").start().unwrap();
    let error = child.wait_for_text(Output::Stderr, SOON, "ready").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(
        error.to_string().contains("exit status: 3") && error.to_string().contains("\nreason\n"),
        "{error}"
    );
}

#[tokio::test]
async fn waits_are_bounded() {
    let mut child = shell("exec sleep 60").start().unwrap();
    let bound = Duration::from_millis(30);
    let error = child.wait_for_text(Output::Stderr, bound, "ready").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(child.wait(bound).await.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[tokio::test]
async fn kill9_ends_also_a_paused_child_and_its_children() {
    let mut child = shell("sleep 60 & echo $!; wait").start().unwrap();
    let grandchild = child.wait_for_text(Output::Stdout, SOON, "").await.unwrap();
    child.pause().unwrap();
    child.wait_until_paused(SOON).await.unwrap();
    child.kill9().await.unwrap();
    assert_eq!(child.exit_status().unwrap().unwrap().signal(), Some(9));
    // Gone, or a zombie until the machine's init reaps it.
    let path = format!("/proc/{grandchild}/stat");
    until(|| fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "))).await;
    assert_eq!(child.terminate().unwrap_err().kind(), ErrorKind::Failed);
}

#[tokio::test]
async fn a_paused_child_resumes_and_takes_sigterm() {
    let mut child =
        shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done").start().unwrap();
    child.wait_for_text(Output::Stdout, SOON, "up").await.unwrap();
    child.pause().unwrap();
    child.wait_until_paused(SOON).await.unwrap();
    child.terminate().unwrap();
    assert_eq!(child.exit_status().unwrap(), None);
    child.resume().unwrap();
    child.wait_for_text(Output::Stdout, SOON, "bye").await.unwrap();
    assert!(child.wait(SOON).await.unwrap().success());
}

#[tokio::test]
async fn a_dropped_child_is_gone() {
    let child = shell("exec sleep 60").start().unwrap();
    let path = format!("/proc/{}", child.id());
    assert!(Path::new(&path).exists());
    drop(child);
    assert!(!Path::new(&path).exists());
}

const DYING_TEST_LOGS: &str = "MINK_TESTKIT_DYING_TEST_LOGS";

/// Not a test of its own: the body of the process that the next test starts.
#[test]
#[ignore = "started by children_die_with_the_test_process"]
fn dying_test_process() {
    let Some(folder) = std::env::var_os(DYING_TEST_LOGS) else {
        return;
    };
    let child = shell("exec sleep 60").log_dir(folder).start().unwrap();
    // Past the capture of the test harness, which an abort would swallow.
    io::Write::write_all(&mut io::stderr(), format!("child {}\n", child.id()).as_bytes()).unwrap();
    std::process::abort();
}

#[tokio::test]
async fn children_die_with_the_test_process() {
    let args = ["--exact", "process::tests::dying_test_process", "--ignored", "--nocapture"];
    let folder = tempfile::tempdir().unwrap();
    let launch =
        Launch::new("test", std::env::current_exe().unwrap()).args(args).env(DYING_TEST_LOGS, folder.path());
    let mut test = launch.start().unwrap();
    let line = test.wait_for_text(Output::Stderr, SOON, "child ").await.unwrap();
    assert!(!test.wait(SOON).await.unwrap().success());
    let path = format!("/proc/{}/stat", line.trim_start_matches("child "));
    until(|| fs::read_to_string(&path).map_or(true, |stat| stat.contains(") Z "))).await;
}

#[test]
fn children_outlive_the_thread_that_asked_for_them() {
    let mut child = std::thread::spawn(|| shell("exec sleep 60").start().unwrap()).join().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(child.exit_status().unwrap(), None);
}

#[tokio::test]
async fn loud_lines_that_are_not_allowed_fail_the_test() {
    let script = "echo 't  INFO a: fine' >&2; echo 't  WARN a: slow put' >&2; echo 't ERROR a: lost' >&2";
    let mut child = shell(script).fail_on_loud_lines(vec!["slow put".to_owned()]).start().unwrap();
    child.wait(SOON).await.unwrap();
    assert_eq!(child.loud_lines().unwrap(), ["t ERROR a: lost"]);
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(child)));
    assert!(dropped.unwrap_err().downcast::<String>().unwrap().contains("t ERROR a: lost"));
}

#[tokio::test]
async fn allowed_lines_do_not_fail_the_test() {
    let mut child = shell("echo 't WARN a: slow put' >&2")
        .fail_on_loud_lines(vec!["slow put".to_owned()])
        .start()
        .unwrap();
    child.wait(SOON).await.unwrap();
}

#[test]
fn each_start_has_logs_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        drop(shell("true").log_dir(folder.path()).start().unwrap());
    }
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["shell-0.stderr", "shell-0.stdout", "shell-1.stderr", "shell-1.stdout"]);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Launch::new("node", "/nowhere/mink").start().unwrap_err();
    assert!(error.to_string().contains("/nowhere/mink"), "{error}");
}
