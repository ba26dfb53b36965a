//! Builds the arguments of a command only when it is used, so that other commands start faster.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ops::{Deref, DerefMut};

/// Arguments whose definition clap builds only when their command is used.
#[derive(Debug, Default)]
pub(crate) struct LazyArgs<T>(pub(crate) T);

impl<T: Args> Args for LazyArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for LazyArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T> Deref for LazyArgs<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for LazyArgs<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
