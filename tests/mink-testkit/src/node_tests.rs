//! A shell script in the place of `mink` shows what a node handle does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

const SOON: Duration = Duration::from_secs(10);

/// A stand-in that writes its arguments, says that it is ready where it was told to listen, and drains on SIGTERM.
const STAND_IN: &str = r#"#!/bin/sh
echo "$@"
[ "$1" = serve ] || exit 2
shift
while [ $# -gt 0 ]; do
  case $1 in
    --kafka-listen) kafka=$2 ;;
    --flight-listen) flight=$2 ;;
    --http-listen) http=$2 ;;
  esac
  shift 2
done
[ "$MINK_FAILPOINTS" = refuse ] && { echo "refused by a fail point" >&2; exit 1; }
[ -n "$MINK_FAILPOINTS" ] && echo "t WARN mink: fail point $MINK_FAILPOINTS" >&2
trap 'echo drained >&2; exit 0' TERM
echo "mink ready kafka=$(echo "$kafka" | sed 's/:0$/:1/') flight=$(echo "$flight" | sed 's/:0$/:3/') http=$(echo "$http" | sed 's/:0$/:2/') runtime=epoll shards=1" >&2
while :; do sleep 0.01; done
"#;

/// A node whose program is the stand-in.
fn stand_in(folder: &Path) -> NodeConfig {
    let path = folder.join("mink");
    fs::write(&path, STAND_IN).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    NodeConfig::new(folder.join("data")).program(path)
}

#[tokio::test]
async fn a_node_starts_drains_and_starts_again_on_its_ports() {
    let folder = tempfile::tempdir().unwrap();
    let config = stand_in(folder.path()).node_id(3).flag("--wal-linger", "10ms").flag("--wal-linger", "5ms");
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let (kafka, http) = (node.kafka().to_owned(), node.http().to_owned());
    assert_ne!(kafka, http);
    let args = node.process().text(Output::Stdout).unwrap();
    assert!(args.starts_with(&format!("serve --data-dir {}/data ", folder.path().display())), "{args}");
    assert!(
        args.contains(" --node-id 3 ") && args.contains(" --wal-linger 5ms") && !args.contains("10ms"),
        "{args}"
    );
    node.stop(SOON).await.unwrap();
    assert!(node.process().text(Output::Stderr).unwrap().ends_with("drained\n"));
    node.restart().await.unwrap();
    assert_eq!((node.kafka(), node.http()), (kafka.as_str(), http.as_str()));
    node.crash_and_restart().await.unwrap();
    assert_eq!(node.kafka(), kafka);
    assert!(node.ready_after() < SOON);
}

#[tokio::test]
async fn a_running_node_is_not_started_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut node = stand_in(folder.path()).start().await.unwrap();
    assert_eq!(node.kafka(), "127.0.0.1:1");
    assert_eq!(node.restart().await.unwrap_err().kind(), ErrorKind::Failed);
}

#[tokio::test]
async fn a_node_that_refuses_to_start_shows_why() {
    let folder = tempfile::tempdir().unwrap();
    let error = stand_in(folder.path()).fail_points("refuse").start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed);
    assert!(error.to_string().contains("refused by a fail point"), "{error}");
}

#[tokio::test]
async fn fail_points_reach_the_node_and_its_lines_must_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let config = stand_in(folder.path()).fail_points("wal.put=pause").allow_line("fail point wal.put=pause");
    let mut node = config.start().await.unwrap();
    node.stop(SOON).await.unwrap();
    assert_eq!(node.process().loud_lines().unwrap(), Vec::<String>::new());
    assert!(node.process().text(Output::Stderr).unwrap().contains("WARN"));
}

#[test]
fn binaries_lie_beside_the_tests() {
    let path = beside(Path::new("/t/debug/deps/e2e-0123"), "mink");
    assert_eq!(path, Some(PathBuf::from("/t/debug/mink")));
}
