//! `ralph man`: generates the manual pages from the same definitions as the help.

use crate::cli::Cli;
use crate::cli::setup::without_hidden_commands;
use crate::config::keys::nearest;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::ui::print::print_output;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

pub(crate) fn man(name: Option<&str>) -> Result<ExitCode, CommandError> {
    let mut cli = without_hidden_commands(&Cli::command());
    cli.build();
    let page = match name {
        None => &cli,
        Some(name) => cli
            .find_subcommand(name)
            .ok_or_else(|| unknown_command(name, &cli))?,
    };
    let mut roff = Vec::new();
    let source = concat!("ralph ", env!("CARGO_PKG_VERSION"));
    Man::new(page.clone())
        .source(source)
        .render(&mut roff)
        .map_err(CommandError::broken)?;
    let mut roff = String::from_utf8_lossy(&roff).replace("\n.SH EXTRA\n", "\n.SH NOTES\n");
    if name.is_some() {
        roff.push_str(".SH \"SEE ALSO\"\nralph(1)\n");
    }
    print_output(&roff)?;
    Ok(ExitCode::Success)
}

fn unknown_command(name: &str, cli: &Command) -> CommandError {
    let known = cli.get_subcommands().map(Command::get_name);
    let hint = match nearest(name, known) {
        Some(suggestion) => {
            format!("did you mean `ralph man {suggestion}`? run `ralph help` to list all commands")
        }
        None => "run `ralph help` to list all commands".into(),
    };
    CommandError::usage(format!("{name:?} is not a command"), hint)
}
