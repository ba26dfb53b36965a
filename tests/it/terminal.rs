//! Agents on a terminal: small full-screen programs, and what a user at a real terminal would see.

use crate::kit::{Done, Test};
use std::fs;

/// Draws a screen, reads what is typed up to Enter, and stores it.
const TAKES: &str = r#"#!/bin/sh
stty -echo -icanon -icrnl
printf '\033[?2004hready> '
until tail -c 1 keys 2>&- | grep -q "$(printf '\r')"; do dd bs=4096 count=1 2>&- >> keys; done
tr -d '\r' < keys > typed
"#;

fn on_terminal(agent: &str) -> Test {
    Test::new().program("agent", agent)
}

fn run(test: &Test, args: &[&str]) -> Done {
    let head = [
        "run",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--context",
        "none",
    ];
    test.ralph(&[&head, args, &["--pty", "--", "./agent"]].concat())
}

/// Returns the first iteration's output log.
fn log(test: &Test) -> String {
    let bytes = fs::read(test.loop_dir("a").join("iterations/0001/output.log")).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn the_prompt_is_pasted_once_and_exactly() {
    let long = "0123456789abcde\n".repeat(65_536);
    for prompt in [
        "do it",
        "two\n  lines, \"quotes\", 'é日' and \\ $(x)\n\nend",
        &long,
    ] {
        let test = on_terminal(TAKES).file("task.md", prompt);
        run(&test, &["--prompt-file", "task.md"]).exits(0);
        assert_eq!(
            test.read("typed"),
            format!("\u{1b}[200~{}\u{1b}[201~", prompt.trim_end())
        );
    }
}

#[test]
fn without_bracketed_paste_the_prompt_is_typed() {
    let test = on_terminal(
        "#!/bin/sh\necho hello\nread -r one; read -r two; echo \"$one,$two\" > typed\n",
    );
    run(&test, &["--prompt", "first\nsecond"]).exits(0);
    assert_eq!(test.read("typed"), "first,second\n");
}

#[test]
fn a_line_that_the_terminal_would_truncate_is_not_typed() {
    let agent = "#!/bin/sh\necho hello\nsleep 1\nhead -n 3 > typed\n";
    for (length, code) in [(4095, 0), (4096, 1)] {
        let test =
            on_terminal(agent).file("task.md", &format!("first\n{}\nlast\n", "x".repeat(length)));
        let done = run(&test, &["--prompt-file", "task.md"]).exits(code);
        if code == 0 {
            assert_eq!(test.read("typed"), test.read("task.md"));
        } else {
            done.complains("the prompt has a line of 4096 bytes")
                .complains("--no-pty");
            assert!(
                !log(&test).contains("first"),
                "nothing is typed: {}",
                log(&test)
            );
        }
    }
    let test = on_terminal(agent).file("task.md", &"0123456789abcde\n".repeat(20_000));
    test.sh("sed -i 's/head -n 3/head -n 20000/' agent");
    run(&test, &["--prompt-file", "task.md"]).exits(0);
    assert_eq!(
        test.read("typed"),
        test.read("task.md"),
        "many lines wait for a program that takes its time"
    );
}

#[test]
fn control_characters_in_the_prompt_are_not_typed() {
    let test = on_terminal(TAKES).file("task.md", "a\u{1b}[201~\u{3}b\rc");
    run(&test, &["--prompt-file", "task.md"]).exits(0);
    assert_eq!(test.read("typed"), "\u{1b}[200~a␛[201~␃b\nc\u{1b}[201~");
}

#[test]
fn the_agent_has_its_own_terminal_with_a_size() {
    let agent = "#!/bin/sh\ntest -t 0 && test -t 1 && test -t 2 && stty size < /dev/tty && echo $TERM\nread x\nexit 7";
    let test = on_terminal(agent);
    let done = run(&test, &["--max-failures", "1", "--prompt", "go"]).exits(1);
    done.says("the agent runs in its own terminal");
    assert!(
        log(&test).starts_with("40 120\r\nxterm-256color\r\n"),
        "{}",
        log(&test)
    );
    assert_eq!(test.events("a", "ended")[0]["report"]["exit"]["code"], 7);
}

#[test]
fn everything_the_agent_started_is_killed_with_it() {
    let agent = "#!/bin/sh\necho hi\nread x\nsetsid sleep 1000 & sleep 1000 &\nkill -9 $$\n";
    let test = on_terminal(agent);
    run(&test, &["--max-failures", "1", "--prompt", "go"]).exits(1);
    assert_eq!(test.events("a", "ended")[0]["report"]["exit"]["signal"], 9);
    assert!(test.survivors().is_empty());
}

#[test]
fn a_promise_on_the_screen_counts_only_if_the_agent_wrote_it() {
    let args = [
        "run",
        "--name",
        "a",
        "-m",
        "2",
        "--pty",
        "--context",
        "none",
        "--prompt",
    ];
    let prompt = "Mend the roof.\nWhen it is mended, write:\n<promise>COMPLETE</promise>\nand nothing after it.";
    for (answer, code) in [
        ("", 1),
        (r"printf '\r\n● <promise>COMPLETE</promise>\r\n'", 0),
        // On the alternate screen, which is gone at the end.
        (
            r"printf '\033[?1049h\033[5;5H<promise>complete</promise>\033[?1049l'",
            0,
        ),
        // Over two rows of the screen, and scrolled off.
        (
            r"printf '%115s\n<promise>' ''; printf '%200s' ''; echo 'COMPLETE</promise>'; seq 200",
            0,
        ),
    ] {
        let agent = format!("#!/bin/sh\necho ready\nread a; read b; read c; read d\n{answer}\n");
        let test = on_terminal(&agent);
        test.ralph(&[&args[..], &[prompt, "--", "./agent"]].concat())
            .exits(code);
        assert!(
            log(&test).contains("<promise>COMPLETE</promise>\r\nand nothing"),
            "the terminal echoes it"
        );
    }
}

#[test]
fn the_done_pattern_on_the_screen_stops_the_agent() {
    let agent = "#!/bin/sh\necho ready\nread a\nsleep 0.5\nprintf '\\033[3;3HAll \\033[1mtasks\\033[0m complete'\nsleep 1000\n";
    let test = on_terminal(agent);
    let done = run(
        &test,
        &[
            "--done-pattern",
            "^ *All tasks complete$",
            "--prompt",
            "Say All tasks complete",
        ],
    );
    done.exits(0).says("done pattern matched, stopping loop");
}

#[test]
fn a_screen_that_never_becomes_ready_is_reported_and_nothing_is_typed() {
    for (agent, settings) in [
        ("#!/bin/sh\nexec sleep 1000\n", "graceReady = \"1s\""),
        (
            "#!/bin/sh\nwhile :; do n=$((n + 1)); printf '\\r%s' $n; sleep 0.1; done\n",
            "graceReady = \"2s\"",
        ),
        (
            "#!/bin/sh\necho hello\nread x; echo $x > typed\n",
            "graceReady = \"1s\"\n[agents.mine]\ncommand = \"./agent\"\nready = \"^>\"",
        ),
    ] {
        let test = on_terminal(agent).file(".ralph/settings.toml", settings);
        let args = ["run", "go", "--name", "a", "--pty", "--max-failures", "1"];
        let named: &[&str] = if settings.contains("mine") {
            &["--agent", "mine"]
        } else {
            &["--", "./agent"]
        };
        let done = test.ralph(&[&args[..], named].concat()).exits(1);
        done.says("[ralph] a: the agent's screen did not become ready for the prompt")
            .says("1 consecutive failure");
        assert!(!test.workspace().join("typed").exists());
        assert_eq!(test.events("a", "noticed")[0]["notice"], "unready");
    }
}

#[test]
fn a_screen_is_ready_when_it_matches_the_preset_s_pattern() {
    let agent =
        "#!/bin/sh\nstty -echo\necho loading; sleep 1.5; echo '> '\nread x; echo $x > typed\n";
    let settings = "[agents.mine]\ncommand = \"./agent\"\nready = \"(?m)^>\"";
    let test = on_terminal(agent).file(".ralph/settings.toml", settings);
    let args = [
        "run",
        "go",
        "--name",
        "a",
        "-m",
        "1",
        "--no-promise",
        "--context",
        "none",
        "--pty",
    ];
    test.ralph(&[&args[..], &["--agent", "mine"]].concat())
        .exits(0);
    assert_eq!(test.read("typed"), "go\n");
    assert!(
        !log(&test).contains("go"),
        "nothing is typed while it echoes"
    );
}

#[test]
fn terminal_queries_are_answered_if_there_is_no_viewer() {
    // Sends each query, and reads the reply up to its last letter.
    let agent = r#"#!/bin/sh
stty -echo -icanon min 0 time 20
ask() { printf "$1"; dd bs=64 count=1 2>&- | tr '\033' 'E' >> answers; echo >> answers; }
printf '\033[3;5H'
for question in '\033[c' '\033[>c' '\033[5n' '\033[6n' '\033[?2004$p' '\033[>0q' '\033]11;?\007' '\033[18t'
do ask "$question"; done
stty icanon
echo ready; read x
"#;
    let test = on_terminal(agent);
    run(&test, &["--prompt", "go"]).exits(0);
    let answers = "E[?62;22c\nE[>0;10;0c\nE[0n\nE[3;5R\nE[?2004;2$y\nEP>|ralphE\\\nE]11;rgb:0000/0000/0000E\\\nE[8;40;120t\n";
    assert_eq!(test.read("answers"), answers);
}

#[test]
fn an_unchanged_screen_is_inactive_even_if_its_cursor_blinks() {
    let agent = r"#!/bin/sh
echo ready; read x
while :; do printf '\033[?25l\033[1;1H'; sleep 0.1; printf '\033[31m\033[?25h\033[2;2H'; sleep 0.1; done
";
    let test = on_terminal(agent);
    let args = [
        "run",
        "go",
        "--name",
        "a",
        "-m",
        "2",
        "--pty",
        "--inactivity-timeout",
        "1s",
        "--no-promise",
    ];
    let done = test
        .ralph(&[&args[..], &["--", "./agent"]].concat())
        .exits(0);
    done.says("[ralph] a: inactivity timeout (1s), restarting");
    assert_eq!(test.status("a")["total_failures"], 0);
}

#[test]
fn a_clock_above_the_last_20_lines_is_not_activity() {
    let agent = r"#!/bin/sh
echo ready; read x
i=0; while test $i -lt 39; do i=$((i+1)); printf '\033[%d;1Hrow' $i; done
while :; do i=$((i+1)); printf '\033[1;1H%d' $i; sleep 0.1; done
";
    let test = on_terminal(agent);
    run(&test, &["--prompt", "go", "--inactivity-timeout", "1s"])
        .says("iteration 1 stopped: it was silent for too long");
}

#[test]
fn a_screen_whose_text_changes_is_not_inactive() {
    let agent = r"#!/bin/sh
echo ready; read x
for n in 1 2 3 4 5 6 7 8; do printf '\033[1;1H%s' $n; sleep 0.4; done
";
    let test = on_terminal(agent);
    run(&test, &["--prompt", "go", "--inactivity-timeout", "2500ms"])
        .exits(0)
        .says("iteration 1 completed (exit: 0");
}

#[test]
fn a_known_agent_s_own_command_gets_a_terminal_unless_it_is_headless() {
    let agent = "#!/bin/sh\nif test -t 0; then echo hi; fi; read x; test -t 0 && echo \"$@\" terminal >> how || echo \"$@\" pipe >> how\n";
    let test = Test::new().on_path("claude", agent);
    let run = |args: &[&str]| {
        let head = ["run", "go", "-m", "1", "--no-promise"];
        test.ralph(&[&head[..], args].concat()).exits(0);
    };
    run(&["--", "claude", "--model", "opus"]);
    run(&["--", "claude", "-p"]);
    run(&["--no-pty", "--", "claude"]);
    run(&["--agent", "claude", "--pty", "--model", "m"]);
    run(&["--pty", "--no-pty", "--agent", "claude"]);
    let how = "--model opus terminal\n-p pipe\npipe\n--permission-mode acceptEdits --model m terminal\n\
        -p --output-format stream-json --verbose --permission-mode acceptEdits pipe\n";
    assert_eq!(test.read("how"), how);
}

/// The screen and the keys of a user in a tmux window.
mod in_a_window {
    use super::on_terminal;
    use crate::kit::{Test, signal, until};

    /// Uses the alternate screen, reports size changes, and records keys.
    const SCREEN: &str = r#"#!/bin/sh
printf '\033[?1049h\033[2J\033[?2004h\033[?1000h\033[1;1Hwelcome '; stty size
stty -echo -icanon -icrnl -isig
trap 'printf "\033[2;1H"; stty size' WINCH
printf '\033[3;1H> '
touch up
until test -e go; do
    dd bs=1 count=1 2>&- >> keys
done
printf '\033[4;1H\033]52;c;aGVsbG8=\007bye'
"#;

    fn tmux(test: &Test, args: &[&str]) -> String {
        let output = test
            .command("tmux")
            .args(["-L", "ralph"])
            .args(args)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn pane(test: &Test) -> String {
        tmux(test, &["capture-pane", "-p", "-t", "ralph:a"])
    }

    fn keys(test: &Test) -> String {
        std::fs::read_to_string(test.workspace().join("keys")).unwrap_or_default()
    }

    /// Returns whether a terminal is in a shell's usual mode, according to `stty -a`.
    fn is_cooked(modes: &str) -> bool {
        let all: Vec<&str> = modes.split_whitespace().collect();
        ["icanon", "echo", "isig", "opost"]
            .iter()
            .all(|mode| all.contains(mode))
    }

    fn spawned(test: &Test, args: &[&str]) {
        let head = [
            "spawn",
            "--name",
            "a",
            "--no-promise",
            "--context",
            "none",
            "--prompt",
            "do it",
            "--pty",
        ];
        test.ralph(&[&head[..], args, &["--", "./agent"]].concat())
            .exits(0);
    }

    #[test]
    fn the_user_sees_the_agent_s_screen_and_keys_go_to_the_agent() {
        let test = on_terminal(SCREEN);
        spawned(&test, &["-m", "1"]);
        until("the prompt", || keys(&test).ends_with('\r'));
        assert_eq!(keys(&test), "\u{1b}[200~do it\u{1b}[201~\r");
        assert!(pane(&test).starts_with("welcome 48 160"), "{}", pane(&test));
        tmux(&test, &["send-keys", "-t", "ralph:a", "x", "C-c", "C-z"]);
        until("the keys", || keys(&test).ends_with("x\u{3}\u{1a}"));
        tmux(
            &test,
            &["resize-window", "-t", "ralph:a", "-x", "100", "-y", "30"],
        );
        until("the size", || {
            // A shell handles the signal when its program gets a key.
            tmux(&test, &["send-keys", "-t", "ralph:a", "y"]);
            pane(&test).contains("\n30 100")
        });
        assert_eq!(
            test.status("a")["status"],
            "running",
            "Ctrl-C was the agent's"
        );
        test.write("go", "");
        tmux(&test, &["send-keys", "-t", "ralph:a", "q"]);
        until("the end", || test.status("a")["status"] == "done");
        until("the end of tmux", || tmux(&test, &["ls"]).is_empty());
    }

    #[test]
    fn the_terminal_is_restored_between_iterations() {
        let test = on_terminal(SCREEN);
        test.write("seen", "");
        let check = "touch checking; until test -e checked; do sleep 0.01; done";
        spawned(&test, &["-m", "1", "--no-preflight", "--check", check]);
        until("the prompt", || keys(&test).ends_with('\r'));
        test.write("go", "");
        tmux(&test, &["send-keys", "-t", "ralph:a", "q"]);
        until("the check", || test.workspace().join("checking").exists());
        until("ralph's own lines", || {
            pane(&test).contains("· iteration 1 completed")
        });
        let format = "#{alternate_on} #{cursor_flag} #{mouse_any_flag} #{pane_tty}";
        let state = tmux(&test, &["display-message", "-p", "-t", "ralph:a", format]);
        let (modes, tty) = state.trim().rsplit_once(' ').unwrap();
        assert_eq!(modes, "0 1 0");
        let modes = test.sh(&format!("stty -a < {tty}"));
        // The console reads keys: the terminal is neither raw nor as a shell needs it.
        assert!(
            modes.contains(
                "
opost "
            ) && modes.contains(" -icanon"),
            "{modes}"
        );
        assert!(
            pane(&test).contains("━━ Iteration 1/1 · "),
            "{}",
            pane(&test)
        );
        assert_eq!(
            tmux(&test, &["show-buffer"]),
            "",
            "the clipboard is out of reach"
        );
        test.write("checked", "");
        until("the end", || test.status("a")["status"] == "done");
    }

    #[test]
    fn the_terminal_is_restored_if_the_supervisor_is_killed() {
        let test = on_terminal(SCREEN);
        // A shell keeps the window open for inspection.
        let ralph = env!("CARGO_BIN_EXE_ralph");
        let line = format!(
            "{ralph} run --name a --prompt 'do it' --pty -- ./agent; stty -a > modes; touch over; sleep 1000"
        );
        tmux(
            &test,
            &[
                "-f",
                "/dev/null",
                "new-session",
                "-d",
                "-s",
                "ralph",
                "-n",
                "a",
                &line,
            ],
        );
        until("the prompt", || keys(&test).ends_with('\r'));
        let shell: u32 = tmux(
            &test,
            &["display-message", "-p", "-t", "ralph:a", "#{pane_pid}"],
        )
        .trim()
        .parse()
        .unwrap();
        let warden: u32 = test
            .sh(&format!("pgrep -P {shell}"))
            .trim()
            .parse()
            .unwrap();
        let supervisor: u32 = test
            .sh(&format!("pgrep -P {warden}"))
            .trim()
            .parse()
            .unwrap();
        signal(supervisor, "KILL");
        until("the end", || test.workspace().join("over").exists());
        assert!(is_cooked(&test.read("modes")));
        let format = "#{alternate_on} #{cursor_flag} #{mouse_any_flag}";
        assert_eq!(
            tmux(&test, &["display-message", "-p", "-t", "ralph:a", format]).trim(),
            "0 1 0"
        );
        tmux(&test, &["kill-server"]);
    }
}
