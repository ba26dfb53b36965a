//! Defines the exit codes of the `ralph` program.

/// An exit code of the `ralph` program. Scripts rely on the values, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitCode {
    /// 0: the loop is done, or the command succeeded.
    Success,
    /// 1: the loop or the command failed.
    Failure,
    /// 2: usage error. Nothing was started or changed.
    Usage,
    /// 3: the loop is blocked, waiting or paused. `ralph resume` continues it.
    Resumable,
    /// 4: `ralph wait --timeout` ran out before the loops ended.
    TimedOut,
    /// 130: a person stopped the loop or interrupted the command.
    Stopped,
    /// Any other code: 128 + n after signal n, or the exit code of a scripted agent.
    Other(u8),
}

impl ExitCode {
    /// Every code that has its own variant, in ascending order.
    pub const ALL: [Self; 6] = [
        Self::Success,
        Self::Failure,
        Self::Usage,
        Self::Resumable,
        Self::TimedOut,
        Self::Stopped,
    ];

    /// Returns the number with which the process exits.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Failure => 1,
            Self::Usage => 2,
            Self::Resumable => 3,
            Self::TimedOut => 4,
            Self::Stopped => 130,
            Self::Other(code) => code,
        }
    }

    /// Returns the meaning in a few words, as the help shows it; empty for [`ExitCode::Other`].
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "done",
            Self::Failure => "failed",
            Self::Usage => "usage error",
            Self::Resumable => "blocked, waiting or paused",
            Self::TimedOut => "wait timed out",
            Self::Stopped => "stopped",
            Self::Other(_) => "",
        }
    }

    /// Returns the exit code for a number; `Failure` for a number that is not a valid exit code.
    pub(crate) fn from_code(code: i32) -> Self {
        let known = Self::ALL
            .into_iter()
            .find(|known| i32::from(known.code()) == code);
        known.unwrap_or_else(|| u8::try_from(code).map_or(Self::Failure, Self::Other))
    }

    /// Returns the exit code that shells report for a process killed by this signal.
    pub(crate) fn from_signal(signal: i32) -> Self {
        Self::from_code(128 + signal)
    }

    /// Returns `Success` for `Ok` and `Failure` for an error.
    pub(crate) fn from_result<T, E>(result: &Result<T, E>) -> Self {
        if result.is_ok() {
            Self::Success
        } else {
            Self::Failure
        }
    }

    /// Returns the worse of two loops' exit codes. From worst to best: failed, stopped, resumable,
    /// done.
    #[must_use]
    pub(crate) fn worse(self, other: Self) -> Self {
        let order = [Self::Success, Self::Resumable, Self::Stopped, Self::Failure];
        let rank = |code: Self| order.iter().position(|known| *known == code);
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode;

    #[test]
    fn every_code_is_read_back() {
        for code in ExitCode::ALL {
            assert_eq!(ExitCode::from_code(code.code().into()), code);
        }
        assert_eq!(ExitCode::from_code(97), ExitCode::Other(97));
        assert_eq!(ExitCode::from_code(-1), ExitCode::Failure);
        assert_eq!(ExitCode::from_code(256), ExitCode::Failure);
        assert_eq!(ExitCode::from_signal(2), ExitCode::Stopped);
        assert_eq!(ExitCode::from_signal(9).code(), 137);
    }

    #[test]
    fn the_worse_exit_code_wins() {
        use ExitCode::{Failure, Resumable, Stopped, Success};
        for (one, other, worst) in [
            (Success, Success, Success),
            (Success, Resumable, Resumable),
            (Resumable, Stopped, Stopped),
            (Stopped, Failure, Failure),
            (Failure, Success, Failure),
            (Resumable, Failure, Failure),
        ] {
            assert_eq!(
                (one.worse(other), other.worse(one)),
                (worst, worst),
                "{one:?}, {other:?}"
            );
        }
    }
}
