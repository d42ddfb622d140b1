# Shared by the scripts of this folder: where installs live, how a part is skipped by name, how two runs don't install at once.

parts_home=${MINK_PARTS:-${HOME:?}/.cache/mink-parts}
mkdir -p "$parts_home"

# skip NAME REASON: the part can't be had here. Exit code 77 means skipped; MINK_TEST_STRICT=1 makes it a failure.
skip() {
  if [ "${MINK_TEST_STRICT:-0}" = 1 ]; then
    echo "missing $1: $2 (MINK_TEST_STRICT=1)" >&2
    exit 1
  fi
  echo "skip $1: $2" >&2
  exit 77
}

# need NAME PROGRAM...: skips the part NAME unless every program is there.
need() {
  local part=$1 program
  shift
  for program; do
    command -v "$program" > /dev/null || skip "$part" "no $program on this machine"
  done
}

# install_once NAME FUNCTION: runs FUNCTION unless an earlier run has finished it; one process at a time, others wait.
install_once() {
  local mark=$parts_home/$1.complete
  [ -f "$mark" ] && return
  exec 9> "$parts_home/$1.lock"
  flock 9
  if [ ! -f "$mark" ]; then
    "$2" > "$parts_home/$1.log" 2>&1 9>&- || { tail -n 5 "$parts_home/$1.log" >&2; skip "$1" "install failed, see $parts_home/$1.log"; }
    touch "$mark"
  fi
  exec 9>&-
}

# with_owner PID DIR: with MINK_PARTS_OWNER set, the server PID is killed as soon as the owner process is gone, and DIR is
# removed if this script made it. So a test run that is killed leaves neither a server nor its data behind.
with_owner() {
  [ -n "${MINK_PARTS_OWNER:-}" ] || return 0
  (
    while kill -0 "$MINK_PARTS_OWNER" 2> /dev/null && kill -0 "$1" 2> /dev/null; do sleep 0.5; done
    kill -0 "$MINK_PARTS_OWNER" 2> /dev/null && exit 0
    kill -9 "$1" 2> /dev/null
    for _ in $(seq 1 50); do
      kill -0 "$1" 2> /dev/null || break
      sleep 0.1
    done
    [ "${made_dir:-0}" = 1 ] && rm -rf -- "$2"
  ) > /dev/null 2>&1 < /dev/null &
}

# enter_dir DIR: makes DIR, remembers in made_dir whether it is ours to remove, goes there, and sets dir to its absolute path.
enter_dir() {
  [ -e "$1" ] || made_dir=1
  mkdir -p "$1"
  cd "$1"
  dir=$PWD
}
