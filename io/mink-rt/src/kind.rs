//! The value of `--runtime`, and which backend it means in this build.
//! Lives on: anywhere.

use crate::{EpollRuntime, Error, ErrorKind, Runtime};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What the user asked for with `--runtime`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeKind {
    /// The best backend that works here.
    #[default]
    Auto,
    /// io_uring, and an error where it is not to be had.
    Uring,
    /// A current-thread executor per core; works everywhere.
    Epoll,
}

/// A backend for the cores that this build has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// [`crate::EpollRuntime`].
    Epoll,
    /// [`crate::UringRuntime`].
    Uring,
}

impl Backend {
    /// The name in the ready line and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
            Self::Uring => "uring",
        }
    }

    /// Whether it may start here; asks the kernel, starts nothing.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] with the cause and the remedy.
    pub fn probe(self) -> Result<(), Error> {
        match self {
            Self::Epoll => Ok(()),
            #[cfg(target_os = "linux")]
            Self::Uring => crate::uring::probe(),
            #[cfg(not(target_os = "linux"))]
            Self::Uring => Err(no_uring()),
        }
    }

    /// Starts it, with the service runtime of `services`, which goes on to own that.
    ///
    /// # Errors
    /// As [`Backend::probe`].
    pub fn beside(self, services: &Arc<EpollRuntime>) -> Result<Arc<dyn Runtime>, Error> {
        match self {
            Self::Epoll => Ok(Arc::clone(services) as Arc<dyn Runtime>),
            #[cfg(target_os = "linux")]
            Self::Uring => Ok(crate::UringRuntime::beside(Arc::clone(services))?),
            #[cfg(not(target_os = "linux"))]
            Self::Uring => Err(no_uring()),
        }
    }
}

/// What `auto` takes where it is to be had: docs/decisions/0020-io-uring.md says why.
const PREFERRED: Backend = Backend::Uring;

impl RuntimeKind {
    /// The backend to start. `auto` falls back to epoll, and the log says why.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] with the remedy when the machine, or what the process may do on it, allows no such backend.
    pub fn resolve(self) -> Result<Backend, Error> {
        match self {
            Self::Auto => Ok(choose(PREFERRED, Backend::probe)),
            Self::Epoll => Ok(Backend::Epoll),
            Self::Uring => Backend::Uring.probe().map(|()| Backend::Uring),
        }
    }
}

fn choose(preferred: Backend, probe: impl FnOnce(Backend) -> Result<(), Error>) -> Backend {
    match probe(preferred) {
        Ok(()) => preferred,
        Err(error) => {
            tracing::info!(runtime = Backend::Epoll.name(), reason = %error, "--runtime auto falls back");
            Backend::Epoll
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn no_uring() -> Error {
    Error::new(
        ErrorKind::Option,
        "--runtime uring: io_uring is Linux's, and this system is another",
        "use --runtime epoll",
    )
}

impl FromStr for RuntimeKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "auto" => Ok(Self::Auto),
            "uring" => Ok(Self::Uring),
            "epoll" => Ok(Self::Epoll),
            other => Err(Error::new(
                ErrorKind::Option,
                format!("--runtime {other:?} is not a runtime"),
                "use one of auto, uring, epoll",
            )),
        }
    }
}

impl fmt::Display for RuntimeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Epoll => "epoll",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_parses_back_from_what_it_prints() {
        for kind in [RuntimeKind::Auto, RuntimeKind::Uring, RuntimeKind::Epoll] {
            assert_eq!(kind.to_string().parse::<RuntimeKind>().unwrap(), kind);
        }
        let error = "tokio".parse::<RuntimeKind>().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
        assert!(error.to_string().contains("auto, uring, epoll"), "{error}");
    }

    #[test]
    fn uring_is_itself_or_refused_with_the_remedy_and_auto_is_what_works() {
        assert_eq!(RuntimeKind::Epoll.resolve().unwrap(), Backend::Epoll);
        match RuntimeKind::Uring.resolve() {
            Ok(backend) => {
                assert_eq!(backend, Backend::Uring);
                assert_eq!(RuntimeKind::Auto.resolve().unwrap(), Backend::Uring);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Option);
                assert!(error.to_string().contains("--runtime epoll"), "{error}");
                assert_eq!(RuntimeKind::Auto.resolve().unwrap(), Backend::Epoll);
            }
        }
    }

    #[test]
    fn auto_takes_what_it_prefers_or_falls_back_to_epoll() {
        assert_eq!(choose(Backend::Uring, |_| Ok(())), Backend::Uring);
        let refused = |_| Err(Error::new(ErrorKind::Option, "not permitted", "permit it"));
        assert_eq!(choose(Backend::Uring, refused), Backend::Epoll);
    }
}
