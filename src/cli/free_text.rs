//! Lets a text argument begin with a dash and a space, as a list does: clap would read it as flags.

use clap::Command;
use clap::builder::{StringValueParser, TypedValueParser};
use std::ffi::OsString;

/// The mark put before such a text, from the private use area of Unicode.
const MARK: char = '\u{f8ff}';

/// Marks the texts among the arguments that begin with a dash and a space, so that clap takes them
/// as positional. Values of flags need no mark.
pub(crate) fn mark(args: &mut [OsString], command: impl FnOnce() -> Command) {
    let end = args.iter().position(|arg| arg == "--");
    let typed = &args[..end.unwrap_or(args.len())];
    let found: Vec<usize> = typed
        .iter()
        .enumerate()
        .filter(|(_, arg)| arg.to_str().is_some_and(is_list))
        .map(|(at, _)| at)
        .collect();
    if found.is_empty() {
        return;
    }
    let mut command = command();
    command.build();
    let words = typed.iter().skip(1).map_while(|arg| arg.to_str());
    let command = words
        .map_while(|word| Some(word).filter(|word| !word.starts_with('-')))
        .try_fold(&command, |command, word| {
            command.find_subcommand(word).ok_or(command)
        })
        .unwrap_or_else(|command| command);
    for at in found {
        let before = args[at - 1].to_string_lossy().into_owned();
        if !takes_value(command, &before) {
            let mut marked = OsString::from(MARK.to_string());
            marked.push(&args[at]);
            args[at] = marked;
        }
    }
}

/// Returns the parser of a positional text, which removes the mark.
pub(crate) fn parser() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|text| text.strip_prefix(MARK).unwrap_or(&text).to_owned())
}

/// Returns whether a text begins with dashes and whitespace: `- fix the list`, or `---` and a line
/// break.
fn is_list(text: &str) -> bool {
    let rest = text.trim_start_matches('-');
    rest.len() < text.len() && rest.starts_with(char::is_whitespace)
}

/// Returns whether this flag of the command takes the next argument as its value.
fn takes_value(command: &Command, flag: &str) -> bool {
    let short = flag.strip_prefix('-').and_then(|rest| rest.chars().last());
    let is_meant = |arg: &&clap::Arg| {
        if let Some(long) = flag.strip_prefix("--") {
            let aliases = arg.get_all_aliases().unwrap_or_default();
            return arg.get_long() == Some(long) || aliases.contains(&long);
        }
        short.is_some() && arg.get_short() == short
    };
    command
        .get_arguments()
        .find(is_meant)
        .is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}
