//! `ralph completions` and `ralph man`: they cover every command and flag, and shells and groff accept them.

use crate::kit::Test;
use clap::{Command, CommandFactory};
use ralph::testing::Cli;

fn verbs() -> Vec<Command> {
    let mut all = Cli::command().disable_help_subcommand(true);
    // clap adds some flags only when the command is built.
    all.build();
    let verbs: Vec<Command> = all
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set())
        .cloned()
        .collect();
    let run = verbs.iter().find(|verb| verb.get_name() == "run").unwrap();
    assert!(flags(run).contains(&"--notify".to_owned()));
    verbs
}

fn flags(verb: &Command) -> Vec<String> {
    let visible = verb.get_arguments().filter(|word| !word.is_hide_set());
    visible
        .filter_map(|word| word.get_long())
        .map(|long| format!("--{long}"))
        .collect()
}

/// Runs a line in a shell that has ralph in its PATH.
fn shell(test: &Test, program: &str, line: &str) -> String {
    let bin = test.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ralph"), bin.join("ralph"));
    let mut command = test.command(program);
    command
        .env(
            "PATH",
            format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()),
        )
        .args(["-c", line]);
    test.start_command(command).end().exits(0).out
}

#[test]
fn every_shell_s_script_contains_every_command_and_flag() {
    let test = Test::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = test.ralph(&["completions", shell]).exits(0).out;
        assert!(
            !script.contains("__script") && !script.contains("__sleeper"),
            "{shell}: the hidden"
        );
        for verb in verbs() {
            assert!(
                script.contains(verb.get_name()),
                "{shell}: {}",
                verb.get_name()
            );
            for flag in flags(&verb) {
                let fish = format!("-l {}", &flag[2..]);
                let wanted = if shell == "fish" { &fish } else { &flag };
                assert!(
                    script.contains(wanted.as_str()),
                    "{shell}: {} {flag}",
                    verb.get_name()
                );
            }
        }
    }
    test.ralph(&["completions", "tcsh"])
        .exits(2)
        .complains("tcsh");
}

/// Lets a shell parse its own script without running it.
fn parses_its_script(shell: &str) {
    let test = Test::new();
    test.write("script", &test.ralph(&["completions", shell]).exits(0).out);
    let mut command = test.command(shell);
    command.args(["-n", "script"]);
    test.start_command(command).end().exits(0);
}

#[test]
fn bash_parses_its_script() {
    parses_its_script("bash");
}

/// Completes the last of the typed words, as bash does.
const BASH: &str = r#"
source <(ralph completions bash)
function=$(complete -p ralph | sed 's/.* -F \([^ ]*\) .*/\1/')
COMP_WORDS=(TYPED) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
"$function" ralph "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"#;

#[test]
fn bash_completes_commands_flags_and_loops() {
    let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
    for name in ["nightly", "night-2", "api"] {
        test.ralph(&[
            "run",
            "x",
            "--name",
            name,
            "--agent",
            "script:../agent.script",
        ])
        .exits(0);
    }
    for (text, found) in [
        ("ralph sto", &["stop"][..]),
        ("ralph doctor --js", &["--json"]),
        ("ralph status ni", &["night-2", "nightly"]),
        ("ralph logs ''", &["api", "night-2", "nightly"]),
        ("ralph logs --fo", &["--follow"]),
    ] {
        let out = shell(&test, "bash", &BASH.replace("TYPED", text));
        assert_eq!(out.lines().collect::<Vec<_>>(), found, "{text}");
    }
}

mod needs_zsh {
    #[test]
    fn zsh_parses_its_script() {
        super::parses_its_script("zsh");
    }
}

mod needs_fish {
    use super::*;

    #[test]
    fn fish_parses_its_script() {
        parses_its_script("fish");
    }

    #[test]
    fn fish_completes_commands_and_loops() {
        let test = Test::new().script("iteration 1\n  promise COMPLETE\n");
        test.ralph(&[
            "run",
            "x",
            "--name",
            "nightly",
            "--agent",
            "script:../agent.script",
        ])
        .exits(0);
        let ask = |text: &str| {
            let out = shell(
                &test,
                "fish",
                &format!("ralph completions fish | source; complete -C 'ralph {text}'"),
            );
            out.lines()
                .filter_map(|line| line.split('\t').next().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        assert_eq!(ask("statu"), ["status"]);
        assert_eq!(ask("status ni"), ["nightly"]);
    }
}

#[test]
fn the_manual_describes_every_command_and_flag() {
    let test = Test::new();
    let escaped = |word: &str| word.replace('-', "\\-");
    let main = test.ralph(&["man"]).exits(0).out;
    assert!(
        main.contains(".TH ralph 1") && main.contains("Exit codes: 0 done, 1 failed"),
        "{main}"
    );
    for verb in verbs() {
        let name = verb.get_name();
        assert!(
            main.contains(&escaped(&format!("ralph-{name}(1)"))),
            "{name}"
        );
        let page = test.ralph(&["man", name]).exits(0).out;
        assert!(page.contains(&format!(".TH ralph-{name} 1")), "{page}");
        assert!(page.ends_with(".SH \"SEE ALSO\"\nralph(1)\n"), "{page}");
        for flag in flags(&verb) {
            assert!(page.contains(&escaped(&flag)), "{name} {flag}");
        }
    }
    assert!(!main.contains("__script"));
    test.ralph(&["man", "statuss"])
        .exits(2)
        .complains("did you mean `ralph man status`?");
}

mod needs_groff {
    use super::*;

    #[test]
    fn groff_formats_every_page_without_a_warning() {
        let test = Test::new();
        let names = verbs();
        for verb in std::iter::once(None).chain(names.iter().map(|verb| Some(verb.get_name()))) {
            let args: Vec<&str> = std::iter::once("man").chain(verb).collect();
            test.write("page.1", &test.ralph(&args).exits(0).out);
            let mut command = test.command("groff");
            command.args(["-man", "-ww", "-Tutf8", "-z", "page.1"]);
            assert_eq!(
                test.start_command(command).end().exits(0).err,
                "",
                "{verb:?}"
            );
        }
    }
}
