//! Which door? One short file per verb; none contains a rule.

mod attach;
mod bus;
mod completions;
mod config;
mod demo;
mod doctor;
mod dry_run;
mod hook;
mod init;
mod logs;
mod ls;
mod man;
mod markers;
mod new_file;
mod pause_stop;
mod plugin;
mod resume;
mod rm;
mod run;
mod say;
mod script;
mod set;
mod spawn;
mod status;
mod supervise;
mod supervise_loop;
mod wait;

use crate::cli::{Verb, Words};
use crate::config::keys::nearest;
use crate::lifecycle::failure::{self, Failure};
use crate::ui::one_line;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::process::ExitCode;

/// The whole program: words in, exit code out.
pub fn main(mut args: Vec<OsString>) -> ExitCode {
    let first = args.get(1).and_then(|word| word.to_str());
    let is_about_ralph = matches!(first, Some("-h" | "--help" | "-V" | "--version"));
    if first.is_some_and(|word| word.starts_with('-')) && !is_about_ralph {
        args.insert(1, OsStr::new("run").to_owned());
    }
    let result = match Words::try_parse_from(&args) {
        Ok(words) => crate::lifecycle::placement::no_branch_apart(&words.verb, &args)
            .and_then(|()| call(words.verb)),
        Err(error) => usage(&error, &args),
    };
    let code = result.unwrap_or_else(Failure::report);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn call(verb: Verb) -> Result<i32, Failure> {
    match verb {
        Verb::Run(words) => run::run(&words),
        Verb::Spawn(words) => spawn::spawn(&words),
        Verb::Attach(words) => attach::attach(&words.name),
        Verb::Resume(words) => resume::resume(&words),
        Verb::Status(words) => status::status(&words),
        Verb::Ls(words) => ls::ls(&words),
        Verb::Logs(words) => logs::logs(&words),
        Verb::Pause(words) => pause_stop::pause(&words.name),
        Verb::Stop(words) => pause_stop::stop(&words.name),
        Verb::Set(words) => set::set(&words),
        Verb::Say(words) => say::say(&words),
        Verb::Wait(words) => wait::wait(&words),
        Verb::Rm(words) => rm::rm(&words),
        Verb::Done => markers::done(),
        Verb::Blocked(words) => markers::blocked(&words.why.join(" ")),
        Verb::Bus { verb } => bus::bus(&verb),
        Verb::Hook { verb } => Ok(hook::hook(&verb)),
        Verb::Plugin { verb } => plugin::plugin(&verb),
        Verb::Config(words) => config::config(&words),
        Verb::Init(words) => init::init(&words),
        Verb::Template => init::template(),
        Verb::Doctor(words) => doctor::doctor(words.json),
        Verb::Completions(words) => completions::completions(words.shell),
        Verb::Man(words) => man::man(words.verb.as_deref()),
        Verb::Demo(words) => demo::demo(words.keep),
        Verb::Supervise(words) => supervise_loop::supervise_loop(&words),
        Verb::Script { file } => script::play(&file),
        Verb::Sleeper { args } => Ok(crate::agent::script::sleeper(&args)),
    }
}

/// Help and version are answers; the rest of what the parser says is an error with a hint.
fn usage(error: &clap::Error, args: &[OsString]) -> Result<i32, Failure> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        failure::answer(&error.to_string())?;
        return Ok(0);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = write!(std::io::stderr(), "{error}");
        return Ok(2);
    }
    let words: Vec<_> = args
        .iter()
        .skip(1)
        .map(|word| word.to_string_lossy())
        .collect();
    let verb = words.first().map(AsRef::as_ref).unwrap_or_default();
    if error.kind() == ErrorKind::InvalidSubcommand {
        let verb = context(error, ContextKind::InvalidSubcommand).unwrap_or(verb);
        let known = Words::command();
        let verbs = known
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(clap::Command::get_name);
        let hint = match nearest(verb, verbs) {
            _ if words[0] == "plugin" => "ralph plugin install, path or uninstall".into(),
            _ if words[0] == "bus" => "ralph bus post or ralph bus tail".into(),
            Some(meant) => format!("did you mean ralph {meant}? ralph help shows every verb"),
            None if words[0] == "help" => "ralph help shows every verb".into(),
            None => format!("for a task, say ralph run {:?}", words.join(" ")),
        };
        return Err(Failure::usage(format!("{verb:?} is not a verb"), hint));
    }
    let text = error.to_string();
    let first = one_line(
        text.split("\n\n")
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: "),
    );
    let hint = match suggestion(error) {
        Some(meant) => format!("did you mean {meant}?"),
        None => format!("ralph {verb} --help shows what can be given"),
    };
    Err(Failure::usage(first, hint))
}

/// What the parser thinks was meant.
fn suggestion(error: &clap::Error) -> Option<&str> {
    let kinds = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ];
    kinds.into_iter().find_map(|kind| context(error, kind))
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(word) => Some(word.as_str()),
        ContextValue::Strings(words) => words.first().map(String::as_str),
        _ => None,
    }
}
