//! The value of `--runtime`, and which backend it means in this build.
//! Lives on: anywhere.

use crate::{Error, ErrorKind};
use std::fmt;
use std::str::FromStr;

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
}

impl Backend {
    /// The name in the ready line and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Epoll => "epoll",
        }
    }
}

impl RuntimeKind {
    /// The backend to start.
    ///
    /// # Errors
    /// [`ErrorKind::Option`] with the remedy when this build has no such backend.
    pub fn resolve(self) -> Result<Backend, Error> {
        match self {
            Self::Auto | Self::Epoll => Ok(Backend::Epoll),
            Self::Uring => Err(Error::new(
                ErrorKind::Option,
                "--runtime uring: this build has no io_uring backend",
                "use --runtime auto or --runtime epoll",
            )),
        }
    }
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
    fn auto_is_epoll_and_uring_is_refused_with_the_remedy() {
        assert_eq!(RuntimeKind::Auto.resolve().unwrap(), Backend::Epoll);
        assert_eq!(RuntimeKind::Epoll.resolve().unwrap(), Backend::Epoll);
        let error = RuntimeKind::Uring.resolve().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Option);
        assert!(error.to_string().contains("--runtime epoll"), "{error}");
    }
}
