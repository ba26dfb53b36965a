//! Words that are only made when their verb is typed: the others need not wait for them.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ops::{Deref, DerefMut};

/// Words whose definitions are costly.
#[derive(Debug, Default)]
pub struct Later<T>(pub T);

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(T::augment_args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(T::augment_args_for_update)
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Later<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
