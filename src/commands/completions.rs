//! `ralph completions`: generates scripts that complete commands, flags and the names of loops.

use crate::cli::Cli;
use crate::cli::setup::without_hidden_commands;
use crate::engine::ExitCode;
use crate::lifecycle::error::CommandError;
use crate::ui::print::print_output;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

pub(crate) fn completions(shell: Shell) -> Result<ExitCode, CommandError> {
    let mut cli = without_hidden_commands(&Cli::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli, "ralph", &mut script);
    let script = String::from_utf8_lossy(&script);
    print_output(&add_loop_names(&script, shell, &loop_commands(&cli)))?;
    Ok(ExitCode::Success)
}

/// Returns the commands whose first argument is a loop's name.
fn loop_commands(cli: &Command) -> Vec<&str> {
    let takes_name = |command: &&Command| {
        command
            .get_positionals()
            .next()
            .is_some_and(|arg| arg.get_id() == "name")
    };
    cli.get_subcommands()
        .filter(takes_name)
        .map(Command::get_name)
        .collect()
}

/// Makes the scripts for bash, zsh and fish complete loop names by running `ralph ls --names`.
fn add_loop_names(script: &str, shell: Shell, commands: &[&str]) -> String {
    match shell {
        Shell::Bash => format!(
            "{script}\n{}",
            BASH.replace("COMMANDS", &commands.join("|"))
        ),
        // The generated script runs itself at its end, so the helper function must precede it.
        Shell::Zsh => script
            .replacen("#compdef ralph\n", &format!("#compdef ralph\n{ZSH}"), 1)
            .replace(
                ":name -- The loop:_default'",
                ":name -- The loop:_ralph_loops'",
            ),
        Shell::Fish => format!("{script}{}", FISH.replace("COMMANDS", &commands.join(" "))),
        _ => script.to_owned(),
    }
}

const BASH: &str = r#"_ralph_or_loops() {
    if [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[2]} != -* ]]; then
        case ${COMP_WORDS[1]} in
        COMMANDS)
            COMPREPLY=($(compgen -W "$("$1" ls --names 2>/dev/null)" -- "${COMP_WORDS[2]}"))
            return
            ;;
        esac
    fi
    _ralph "$@"
}
complete -F _ralph_or_loops -o bashdefault -o default ralph
"#;

const ZSH: &str = r#"
_ralph_loops() {
    local -a loops
    loops=(${(f)"$(_call_program loops ralph ls --names 2>/dev/null)"})
    compadd -a loops
}
"#;

const FISH: &str = r#"complete -c ralph -n "__fish_seen_subcommand_from COMMANDS" -f -a "(ralph ls --names 2>/dev/null)"
"#;
