//! Asks the kernel whether this process may use io_uring, before any executor tries and panics.
//! Lives on: anywhere; a few system calls at start.
//! Owns: the only unsafe code of the crate.
//! Invariants: what passes has been through a ring once: set up, entered, completed. A profile may allow the first and forbid the second.

use crate::{Error, ErrorKind};
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, Parameters, opcode};
use std::io;

const ENTRIES: u32 = 2;
/// A no-op is completed by the call that submits it.
const PATIENCE_SECONDS: u64 = 1;
/// By which the no-op is known again.
const TAG: u64 = 0x6d69_6e6b;

/// # Errors
/// [`ErrorKind::Option`] with the cause and the remedy: the container's profile, the system's setting, a limit, the kernel's age.
pub(crate) fn probe() -> Result<(), Error> {
    #[cfg(feature = "glommio")]
    check_locked_memory(rustix::process::getrlimit(rustix::process::Resource::Memlock).current)?;
    let mut ring = IoUring::new(ENTRIES).map_err(|source| refusal("set up", source))?;
    check_age(Features::of(ring.params()))?;
    carry_a_no_op(&mut ring).map_err(|source| refusal("entered", source))
}

/// What a kernel's rings can do, as far as it tells their age.
#[derive(Clone, Copy, Debug)]
struct Features {
    /// Parks with an end (Linux 5.11).
    ends_parks: bool,
    /// Came with polls that stay armed (5.13), which have no bit of their own.
    tags_resources: bool,
}

impl Features {
    fn of(params: &Parameters) -> Self {
        Self { ends_parks: params.is_feature_ext_arg(), tags_resources: params.is_feature_resource_tagging() }
    }
}

fn check_age(features: Features) -> Result<(), Error> {
    if features.ends_parks && features.tags_resources {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Option,
        "--runtime uring: the io_uring of this kernel is too old",
        "run on Linux 5.13 or newer, or use --runtime epoll",
    ))
}

/// One no-op through the ring, with an end to the wait as a core's parks have.
#[expect(
    unsafe_code,
    reason = "what stands in a ring may point to memory, which only the caller can vouch for"
)]
fn carry_a_no_op(ring: &mut IoUring) -> io::Result<()> {
    let no_op = opcode::Nop::new().build().user_data(TAG);
    // SAFETY: a no-op points to nothing: neither memory nor a descriptor has to outlive it.
    let pushed = unsafe { ring.submission().push(&no_op) };
    pushed.map_err(|full| io::Error::other(full.to_string()))?;
    let patience = Timespec::new().sec(PATIENCE_SECONDS);
    ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&patience))?;
    match ring.completion().next() {
        Some(done) if done.user_data() == TAG && done.result() == 0 => Ok(()),
        Some(done) => Err(io::Error::from_raw_os_error(done.result().saturating_neg())),
        None => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// glommio refuses to start below this.
#[cfg(any(feature = "glommio", test))]
fn check_locked_memory(limit: Option<u64>) -> Result<(), Error> {
    const LOCKED_BYTES_MIN: u64 = 512 << 10;
    match limit {
        Some(bytes) if bytes < LOCKED_BYTES_MIN => Err(Error::new(
            ErrorKind::Option,
            format!("--runtime uring: only {} KiB of memory may be locked", bytes >> 10),
            "raise the limit (ulimit -l 8192; docker run --ulimit memlock=8388608), or use --runtime epoll",
        )),
        _ => Ok(()),
    }
}

fn refusal(step: &str, source: io::Error) -> Error {
    let (what, remedy) = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => (
            "this process is not permitted to use io_uring",
            "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile and set the \
             sysctl kernel.io_uring_disabled to 0, or use --runtime epoll",
        ),
        Some(libc::ENOSYS) => (
            "this kernel has no io_uring, or the container's seccomp profile hides it",
            "run on Linux 5.13 or newer, allow the io_uring system calls in the seccomp profile, or use --runtime epoll",
        ),
        Some(libc::ENOMEM) => (
            "no memory may be locked for an io_uring",
            "raise the limit of locked memory (ulimit -l 8192; docker run --ulimit memlock=8388608), or use --runtime epoll",
        ),
        Some(libc::EMFILE | libc::ENFILE) => (
            "no file descriptor is left for an io_uring",
            "raise the limit of open files (ulimit -n), or use --runtime epoll",
        ),
        _ => ("io_uring does not work here", "use --runtime epoll"),
    };
    let message = format!("--runtime uring: {what}; a ring cannot be {step}");
    Error::new(ErrorKind::Option, message, remedy).with_source(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, RuntimeKind};

    #[test]
    fn every_refusal_names_the_way_out() {
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENOMEM, libc::EMFILE, libc::EINVAL] {
            let error = refusal("set up", io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind(), ErrorKind::Option);
            assert!(error.to_string().contains("--runtime epoll"), "{error}");
        }
        assert!(refusal("set up", io::Error::from_raw_os_error(libc::EPERM)).remedy().contains("seccomp"));
        assert!(check_locked_memory(Some(64 << 10)).unwrap_err().message().contains("64 KiB"));
        assert!(check_locked_memory(Some(8 << 20)).is_ok() && check_locked_memory(None).is_ok());
    }

    #[test]
    fn an_old_ring_is_refused_and_a_newer_one_taken() {
        let new = Features { ends_parks: true, tags_resources: true };
        for old in [Features { tags_resources: false, ..new }, Features { ends_parks: false, ..new }] {
            assert!(check_age(old).unwrap_err().remedy().contains("5.13"));
        }
        assert!(check_age(new).is_ok());
    }

    /// The filter holds for the thread that asks for it, and goes with it.
    fn where_call_fails_with<T: Send + 'static>(
        call: libc::c_long,
        errno: i32,
        asked: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        #[expect(unsafe_code, reason = "a filter of system calls is set by a system call")]
        fn filter(call: libc::c_long, errno: i32) {
            let op = |code: u16, jf: u8, k: u32| libc::sock_filter { code, jt: 0, jf, k };
            let call = u32::try_from(call).unwrap();
            // Load the call's number; if it is this one, fail with the errno; else allow.
            let mut program = [
                op(0x20, 0, 0),
                op(0x15, 1, call),
                op(0x06, 0, libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap()),
                op(0x06, 0, libc::SECCOMP_RET_ALLOW),
            ];
            let program = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
            // SAFETY: both calls take what is passed by value, and the program with its four instructions, which outlives them.
            let set = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
            };
            assert!(set, "{}", io::Error::last_os_error());
        }
        let thread = std::thread::spawn(move || {
            filter(call, errno);
            asked()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_seccomp_profile_that_forbids_io_uring_is_told_apart_from_a_kernel_without_it() {
        let setup = libc::SYS_io_uring_setup;
        let forbidden = where_call_fails_with(setup, libc::EPERM, probe).unwrap_err();
        assert!(forbidden.message().contains("not permitted"), "{forbidden}");
        let hidden = where_call_fails_with(setup, libc::ENOSYS, probe).unwrap_err();
        assert!(hidden.message().contains("hides it"), "{hidden}");
    }

    #[test]
    fn a_ring_that_may_be_set_up_and_not_entered_is_refused_and_auto_falls_back() {
        let (enter, any) = (libc::SYS_io_uring_enter, Backend::Epoll);
        if probe().is_err() {
            // Nothing to forbid here; that auto falls back is tested where it chooses.
            assert_eq!(RuntimeKind::Auto.resolve().unwrap(), any);
            return;
        }
        for errno in [libc::EPERM, libc::ENOSYS] {
            let refused = where_call_fails_with(enter, errno, probe).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Option);
            assert!(refused.message().contains("cannot be entered"), "{refused}");
            assert!(refused.remedy().contains("--runtime epoll"), "{refused}");
            assert_eq!(where_call_fails_with(enter, errno, || RuntimeKind::Auto.resolve()).unwrap(), any);
            where_call_fails_with(enter, errno, || RuntimeKind::Uring.resolve()).unwrap_err();
        }
    }
}
