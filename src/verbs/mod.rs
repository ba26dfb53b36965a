//! Which door? One short file per verb; none contains a rule.

mod demo;
mod failure;
mod inside;
mod logs;
mod ls;
mod operate;
mod resume;
mod run;
mod script;
mod set;
mod status;
mod supervise;
mod visit;

use crate::cli::{Verb, Words};
use clap::Parser;
use clap::error::ErrorKind;
use failure::Failure;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// The whole program: words in, exit code out.
pub fn main(mut args: Vec<OsString>) -> ExitCode {
    let first = args.get(1).and_then(|word| word.to_str());
    let is_about_ralph = matches!(first, Some("-h" | "--help" | "-V" | "--version"));
    if first.is_some_and(|word| word.starts_with('-')) && !is_about_ralph {
        args.insert(1, OsStr::new("run").to_owned());
    }
    let result = match Words::try_parse_from(args) {
        Ok(words) => call(words.verb),
        Err(error) => usage(&error),
    };
    let code = result.unwrap_or_else(Failure::report);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn call(verb: Verb) -> Result<i32, Failure> {
    match verb {
        Verb::Run(words) => run::run(&words),
        Verb::Resume(words) => resume::resume(&words),
        Verb::Status(words) => status::status(&words),
        Verb::Ls(words) => ls::ls(&words),
        Verb::Logs(words) => logs::logs(&words),
        Verb::Pause(words) => operate::pause(&words.name),
        Verb::Stop(words) => operate::stop(&words.name),
        Verb::Set(words) => set::set(&words),
        Verb::Done => inside::done(),
        Verb::Blocked(words) => inside::blocked(&words.why.join(" ")),
        Verb::Demo(words) => demo::demo(words.keep),
        Verb::Script { file } => script::play(&file),
        Verb::Sleeper { args } => Ok(crate::drive::script::sleeper(&args)),
    }
}

/// Help and version are answers; the rest of what the parser says is an error with a hint.
fn usage(error: &clap::Error) -> Result<i32, Failure> {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        print!("{error}");
        return Ok(0);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        eprint!("{error}");
        return Ok(2);
    }
    let text = error.to_string();
    let mut parts = text.split("\n\n");
    let first = parts.next().unwrap_or_default().trim_start_matches("error: ").trim();
    let tips: Vec<&str> = parts.filter_map(|part| part.trim().strip_prefix("tip: ")).collect();
    let hint =
        if tips.is_empty() { "ralph help shows every verb and flag".to_owned() } else { tips.join("; ") };
    Err(Failure::usage(first, hint))
}
