//! The commands of the `ralph` program, one file each. Rules that the library needs too are in
//! `lifecycle`.

mod atomic_file;
mod attach;
mod background;
mod bus;
mod completions;
mod config;
mod demo;
mod diff;
mod doctor;
mod dry_run;
#[cfg(feature = "fleet")]
mod fleet;
mod hints;
mod hook;
mod init;
mod logs;
mod ls;
mod man;
mod markers;
mod open_browser;
mod open_loop;
mod pause_stop;
mod plugin;
mod receipt;
mod report;
mod resume;
mod rewind;
mod rm;
mod run;
mod sandboxed;
mod say;
mod script;
mod selftest;
mod set;
mod show;
mod spawn;
mod stats;
mod status;
mod supervise;
mod supervise_loop;
mod top;
mod trust;
mod ui;
mod verify;
mod wait;
mod workspace;
mod worktree_flag;

use crate::cli::{Cli, Command, free_text};
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::ui::one_line;
use crate::ui::print::{print_output, print_usage, report_error};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::{OsStr, OsString};

/// Runs the program with the given arguments and returns its exit code.
pub fn main(mut args: Vec<OsString>) -> std::process::ExitCode {
    let first = args.get(1).and_then(|arg| arg.to_str());
    let is_global = matches!(first, Some("-h" | "--help" | "-V" | "--version"));
    if first.is_some_and(|arg| arg.starts_with('-')) && !is_global {
        args.insert(1, OsStr::new("run").to_owned());
    }
    free_text::mark(&mut args, Cli::command);
    let result = match Cli::try_parse_from(&args) {
        Ok(cli) => worktree_flag::reject_ambiguous_branch(&cli.command, &args)
            .and_then(|()| sandboxed::reject_in_sandbox(&cli.command))
            .and_then(|()| run_command(cli.command, &args)),
        Err(error) => handle_parse_error(&error, &args),
    };
    result.unwrap_or_else(report_error).code().into()
}

/// Runs a command, on a mirror of the fleet if it asks for one.
fn run_command(command: Command, args: &[OsString]) -> Result<ExitCode, CommandError> {
    #[cfg(feature = "fleet")]
    if let Some(result) = fleet::run_mirrored(&command, args) {
        return result;
    }
    #[cfg(not(feature = "fleet"))]
    let _ = args;
    dispatch(command)
}

fn dispatch(command: Command) -> Result<ExitCode, CommandError> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Spawn(args) => spawn::spawn(&args),
        Command::Attach(args) => attach::attach(&args.name),
        Command::Resume(args) => resume::resume(&args),
        Command::Status(args) => status::status(&args),
        Command::Ls(args) => ls::ls(&args),
        Command::Top(args) => top::top(&args),
        Command::Logs(args) => logs::logs(&args),
        Command::Ui(args) => ui::ui(&args),
        Command::Show(args) => show::show(&args),
        Command::Diff(args) => diff::diff(&args),
        Command::Rewind(args) => rewind::rewind(&args),
        Command::Receipt(args) => receipt::receipt(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Report(args) => report::report(&args),
        Command::Stats(args) => stats::stats(&args),
        Command::Pause(args) => pause_stop::pause(&args.names),
        Command::Stop(args) => pause_stop::stop(&args.names),
        Command::Set(args) => set::set(&args),
        Command::Say(args) => say::say(&args),
        Command::Wait(args) => wait::wait(&args),
        #[cfg(feature = "fleet")]
        Command::Rm(args) if args.fleet.fleet.is_some() => fleet::rm(&args),
        Command::Rm(args) => rm::rm(&args),
        Command::Done => markers::done(),
        Command::Blocked(args) => markers::blocked(&args.why.join(" ")),
        Command::Bus { command } => bus::bus(&command),
        #[cfg(feature = "fleet")]
        Command::Fleet { command } => fleet::fleet(&command),
        #[cfg(feature = "fleet")]
        Command::Fetch(args) => fleet::fetch(&args),
        #[cfg(feature = "fleet")]
        Command::Worker(args) => fleet::worker(&args),
        Command::Hook { command } => Ok(hook::hook(&command)),
        Command::Plugin { command } => plugin::plugin(&command),
        Command::Config(args) => config::config(&args),
        Command::Trust(args) => trust::trust(&args),
        Command::Init(args) => init::init(&args),
        Command::Template => init::template(),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions(args) => completions::completions(args.shell),
        Command::Man(args) => man::man(args.command.as_deref()),
        Command::Selftest(args) => selftest::selftest(&args),
        Command::Demo(args) => demo::demo(args.keep),
        Command::Supervise(args) => supervise_loop::supervise_loop(&args),
        Command::Script { file } => script::play(&file),
        Command::Sleeper { args } => Ok(crate::agent::script::run_sleeper(&args)),
    }
}

/// Prints the help or version if the user asked for it. Turns any other parse error into an error
/// with a hint.
fn handle_parse_error(error: &clap::Error, args: &[OsString]) -> Result<ExitCode, CommandError> {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        print_output(&error.to_string())?;
        return Ok(ExitCode::Success);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        print_usage(&error.to_string());
        return Ok(ExitCode::Usage);
    }
    let typed: Vec<_> = args
        .iter()
        .skip(1)
        .map(|arg| arg.to_string_lossy())
        .collect();
    let command = typed.first().map(AsRef::as_ref).unwrap_or_default();
    if error.kind() == ErrorKind::InvalidSubcommand {
        let name = context(error, ContextKind::InvalidSubcommand).unwrap_or(command);
        let hint = match hints::command_hint(name) {
            _ if command == "plugin" => "use `ralph plugin install`, `path` or `uninstall`".into(),
            _ if command == "fleet" => "use `ralph fleet up`, `doctor` or `status`".into(),
            _ if command == "bus" => "use `ralph bus post` or `ralph bus tail`".into(),
            Some(hint) => hint,
            None if command == "help" => "run `ralph help` to list all commands".into(),
            None => hints::task_hint(typed.iter().map(AsRef::as_ref)),
        };
        return Err(CommandError::usage(
            format!("{name:?} is not a command"),
            hint,
        ));
    }
    let text = error.to_string();
    let message = one_line(
        text.split("\n\n")
            .next()
            .unwrap_or_default()
            .trim_start_matches("error: "),
    );
    let hint = match (error.kind(), suggestion(error)) {
        (ErrorKind::UnknownArgument, suggested) => {
            let flag = context(error, ContextKind::InvalidArg).unwrap_or_default();
            let rest: Vec<&str> = typed.iter().skip(1).map(AsRef::as_ref).collect();
            let limit = (command == "set").then(|| hints::limit_hint(&rest, flag));
            limit
                .flatten()
                .or_else(|| hints::flag_hint(command, flag, suggested))
        }
        (ErrorKind::MissingRequiredArgument, _) if message.contains("<NAME>") => Some(format!(
            "name a loop: `ralph ls` lists all loops, `ralph {command} --help` all arguments"
        )),
        (_, suggested) => suggested.map(|suggested| format!("did you mean {suggested}?")),
    };
    let hint =
        hint.unwrap_or_else(|| format!("run `ralph {command} --help` to list all arguments"));
    Err(CommandError::usage(message, hint))
}

/// Returns the suggestion of clap's parser. `None` if it has none.
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
        ContextValue::String(text) => Some(text.as_str()),
        ContextValue::Strings(texts) => texts.first().map(String::as_str),
        _ => None,
    }
}
