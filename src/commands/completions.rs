//! `ralph completions`: what a shell needs to complete verbs, flags, and the names of loops.

use crate::cli::Words;
use crate::cli::setup::visible;
use crate::lifecycle::failure::{Failure, answer};
use clap::{Command, CommandFactory};
use clap_complete::Shell;

pub(crate) fn completions(shell: Shell) -> Result<i32, Failure> {
    let mut command = visible(&Words::command());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "ralph", &mut script);
    let script = String::from_utf8_lossy(&script);
    answer(&with_loops(&script, shell, &of_loops(&command)))?;
    Ok(0)
}

/// The verbs whose first word is a loop's name.
fn of_loops(command: &Command) -> Vec<&str> {
    let first = |verb: &&Command| {
        verb.get_positionals()
            .next()
            .is_some_and(|word| word.get_id() == "name")
    };
    command
        .get_subcommands()
        .filter(first)
        .map(Command::get_name)
        .collect()
}

/// The script that also asks ralph itself for the names of loops, where that is simple.
fn with_loops(script: &str, shell: Shell, verbs: &[&str]) -> String {
    match shell {
        Shell::Bash => format!("{script}\n{}", BASH.replace("VERBS", &verbs.join("|"))),
        // The generated script calls itself at its end: what it needs must stand before.
        Shell::Zsh => script
            .replacen("#compdef ralph\n", &format!("#compdef ralph\n{ZSH}"), 1)
            .replace(
                ":name -- The loop:_default'",
                ":name -- The loop:_ralph_loops'",
            ),
        Shell::Fish => format!("{script}{}", FISH.replace("VERBS", &verbs.join(" "))),
        _ => script.to_owned(),
    }
}

const BASH: &str = r#"_ralph_or_loops() {
    if [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[2]} != -* ]]; then
        case ${COMP_WORDS[1]} in
        VERBS)
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

const FISH: &str = r#"complete -c ralph -n "__fish_seen_subcommand_from VERBS" -f -a "(ralph ls --names 2>/dev/null)"
"#;
