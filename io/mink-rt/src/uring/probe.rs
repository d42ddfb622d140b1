//! Asks the kernel whether this process may use io_uring, before any executor tries and panics.
//! Lives on: anywhere; one system call at start.
//! Owns: the only unsafe code of the crate.

use crate::{Error, ErrorKind};
use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// Words of the kernel's `struct io_uring_params` (120 bytes): the kernel reads and fills them.
const PARAMS_WORDS: usize = 30;
const FEATURES_WORD: usize = 5;

/// `IORING_FEAT_EXT_ARG` (Linux 5.11, parks with an end) and `IORING_FEAT_RSRC_TAGS`, which came with polls that stay
/// armed (5.13) and have no bit of their own.
const FEATURES_NEEDED: u32 = (1 << 8) | (1 << 10);

/// # Errors
/// [`ErrorKind::Option`] with the cause and the remedy: the container's profile, the system's setting, a limit, the kernel's age.
pub(crate) fn probe() -> Result<(), Error> {
    #[cfg(feature = "glommio")]
    check_locked_memory(rustix::process::getrlimit(rustix::process::Resource::Memlock).current)?;
    // The ring closes at once: that it was given is all that is asked.
    let (_ring, features) = set_up_a_ring().map_err(refusal)?;
    check_features(features)
}

fn check_features(features: u32) -> Result<(), Error> {
    if features & FEATURES_NEEDED == FEATURES_NEEDED {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Option,
        "--runtime uring: the io_uring of this kernel is too old",
        "run on Linux 5.13 or newer, or use --runtime epoll",
    ))
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

fn refusal(source: io::Error) -> Error {
    let (what, remedy) = match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => (
            "--runtime uring: this process is not permitted to use io_uring",
            "allow io_uring_setup, io_uring_enter and io_uring_register in the container's seccomp profile and set the \
             sysctl kernel.io_uring_disabled to 0, or use --runtime epoll",
        ),
        Some(libc::ENOSYS) => (
            "--runtime uring: this kernel has no io_uring, or the container's seccomp profile hides it",
            "run on Linux 5.13 or newer, allow the io_uring system calls in the seccomp profile, or use --runtime epoll",
        ),
        Some(libc::ENOMEM) => (
            "--runtime uring: no memory may be locked for an io_uring",
            "raise the limit of locked memory (ulimit -l 8192; docker run --ulimit memlock=8388608), or use --runtime epoll",
        ),
        Some(libc::EMFILE | libc::ENFILE) => (
            "--runtime uring: no file descriptor is left for an io_uring",
            "raise the limit of open files (ulimit -n), or use --runtime epoll",
        ),
        _ => ("--runtime uring: an io_uring cannot be set up", "use --runtime epoll"),
    };
    Error::new(ErrorKind::Option, what, remedy).with_source(source)
}

/// The ring and what this kernel's rings can do.
fn set_up_a_ring() -> io::Result<(OwnedFd, u32)> {
    let mut params = [0_u32; PARAMS_WORDS];
    let entries: libc::c_uint = 1;
    // SAFETY: `io_uring_setup(entries, params)` reads and writes one `io_uring_params`, which is `PARAMS_WORDS` words;
    // the array is that long, aligned as its members are, all zero as the call demands, and outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, params.as_mut_ptr()) };
    match RawFd::try_from(result) {
        // SAFETY: the kernel has just given this descriptor to us, and nobody else knows of it.
        Ok(fd) if fd >= 0 => Ok((unsafe { OwnedFd::from_raw_fd(fd) }, params[FEATURES_WORD])),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_way_out() {
        for errno in [libc::EPERM, libc::EACCES, libc::ENOSYS, libc::ENOMEM, libc::EMFILE, libc::EINVAL] {
            let error = refusal(io::Error::from_raw_os_error(errno));
            assert_eq!(error.kind(), ErrorKind::Option);
            assert!(error.to_string().contains("--runtime epoll"), "{error}");
        }
        assert!(refusal(io::Error::from_raw_os_error(libc::EPERM)).remedy().contains("seccomp"));
        assert!(check_locked_memory(Some(64 << 10)).unwrap_err().message().contains("64 KiB"));
        assert!(check_locked_memory(Some(8 << 20)).is_ok() && check_locked_memory(None).is_ok());
    }

    #[test]
    fn an_old_ring_is_refused_and_a_newer_one_taken() {
        assert!(check_features(1 << 8).unwrap_err().remedy().contains("5.13"));
        assert!(check_features(u32::MAX).is_ok());
    }

    /// The filter holds for the thread that asks for it, and goes with it.
    fn probe_where_setup_fails_with(errno: i32) -> Result<(), Error> {
        fn filter(errno: i32) {
            let op = |code: u16, jf: u8, k: u32| libc::sock_filter { code, jt: 0, jf, k };
            let setup = u32::try_from(libc::SYS_io_uring_setup).unwrap();
            // Load the call's number; if it is this one, fail with the errno; else allow.
            let mut program = [
                op(0x20, 0, 0),
                op(0x15, 1, setup),
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
            filter(errno);
            probe()
        });
        thread.join().unwrap()
    }

    #[test]
    fn a_seccomp_profile_that_forbids_io_uring_is_told_apart_from_a_kernel_without_it() {
        let forbidden = probe_where_setup_fails_with(libc::EPERM).unwrap_err();
        assert!(forbidden.message().contains("not permitted"), "{forbidden}");
        let hidden = probe_where_setup_fails_with(libc::ENOSYS).unwrap_err();
        assert!(hidden.message().contains("hides it"), "{hidden}");
    }
}
