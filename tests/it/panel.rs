//! The rich console: its look and its keys, in a real tmux.

use crate::kit::{Test, until};
use crate::snap::assert_snapshot;
use crate::spawn::tmux;
use regex::Regex;

const AGENT: &str = "script:../agent.script";

/// Waits in its first iteration until the file `go` exists.
const PATIENT: &str = "
iteration 1
  say ready
  sh until test -e go; do sleep 0.02; done
  say finished
iteration *
  promise COMPLETE
";

/// Prints what Claude Code prints, and waits in its second iteration until the file `go` exists.
const CLAUDE: &str = r#"#!/bin/sh
case "$*" in *--version*) echo 2.0.0; exit ;; esac
cat > /dev/null
count=$(($(cat ../count 2> /dev/null || echo 0) + 1)); echo $count > ../count
say() {
    printf '{"type":"assistant","message":{"id":"%s","model":"m","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":12000,"output_tokens":900}},"parent_tool_use_id":null}\n' "$count$1" "$2"
}
tool() {
    printf '{"type":"assistant","message":{"id":"%s","model":"m","content":[{"type":"tool_use","id":"%s","name":"%s","input":%s}]},"parent_tool_use_id":null}\n' "$count$1" "$1" "$2" "$3"
    printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"%s","is_error":%s}]}}\n' "$1" "$4" "$5"
}
printf '{"type":"system","subtype":"init","session_id":"s","model":"m","tools":[]}\n'
if [ $count = 2 ]; then
    say a 'I continue where the last iteration stopped.'
    until test -e go; do sleep 0.02; done
else
    say a "I look at the **failing test** first. The bug is probably in \`src/total.rs\`, which reads only the first line.\n\n## Plan\n\n- read the source and the test, which is the one with the very long name that wraps between words\n- fix it\n\n日本語のテキストは幅が広いので、行の折り返しが正しいことを確認します。日本語。\n"
    tool b Read '{"file_path":"src/total.rs"}' text false
    tool c Edit '{"file_path":"src/total.rs","old_string":"a","new_string":"b"}' ok false
    tool d Bash '{"command":"cargo test --workspace --all-features total::adds_up"}' 'Exit code 101' true
    tool e Bash '{"command":"git push"}' "Claude requested permissions to use Bash, but you haven't granted it yet." true
    say f 'averyveryverylongwordwithoutanyspacethatcannotfitinonerowofaneightycolumnterminal\n'
fi
printf '{"type":"result","subtype":"success","is_error":false,"result":"more","total_cost_usd":0.62,"usage":{"input_tokens":32000,"output_tokens":2900}}\n'
"#;

const CHECK: &str = "#!/bin/sh
for number in 1 2 3 4 5 6 7 8 9; do echo \"test invoice_$number ... ok\"; done
echo 'test total::adds_up ... FAILED'
echo \"thread 'total::adds_up' panicked at src/total.rs:14:5:\"
exit 1
";

/// A window of a tmux server for this test only. It shows the last screen after its program has
/// ended.
struct Window<'a> {
    test: &'a Test,
}

impl<'a> Window<'a> {
    fn start(test: &'a Test, columns: u16, rows: u16, line: &str) -> Self {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let window = Self { test };
        let options = ["remain-on-exit on", "status off", "escape-time 0"];
        let mut args = vec!["start-server"];
        for option in options {
            args.extend([";", "set-option", "-g"]);
            args.extend(option.split(' '));
        }
        args.extend([
            ";",
            "new-session",
            "-d",
            "-s",
            "w",
            "-x",
            &columns,
            "-y",
            &rows,
        ]);
        args.push(line);
        window.tmux(&args);
        window
    }

    /// Starts `ralph` with these arguments.
    fn ralph(test: &'a Test, columns: u16, rows: u16, args: &[&str]) -> Self {
        let program = env!("CARGO_BIN_EXE_ralph");
        let line = format!("exec '{program}' '{}'", args.join("' '"));
        Self::start(test, columns, rows, &line)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = self.test.command("tmux");
        command
            .args(["-u", "-L", "view", "-f", "/dev/null"])
            .args(args);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "w"])
    }

    #[track_caller]
    fn until_shows(&self, text: &str) {
        let mut screen = String::new();
        until(&format!("{text:?} on the screen"), || {
            screen = self.screen();
            screen.contains(text)
        });
    }

    /// Types text.
    fn press(&self, keys: &str) {
        self.tmux(&["send-keys", "-t", "w", "-l", keys]);
    }

    /// Presses a key by its name.
    fn press_key(&self, name: &str) {
        self.tmux(&["send-keys", "-t", "w", name]);
    }

    /// Waits until the program has ended, and checks its exit code. tmux does not always report one.
    #[track_caller]
    fn ends_with(&self, expected: i32) {
        let state = || {
            self.tmux(&[
                "list-panes",
                "-t",
                "w",
                "-F",
                "#{pane_dead} #{pane_dead_status}",
            ])
        };
        until("the program's end", || state().starts_with("1 "));
        let code = state()[2..].trim().to_owned();
        assert!(code.is_empty() || code == expected.to_string(), "{code}");
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// Returns a screen without what changes from run to run, and without the length of the rules.
fn steady(screen: &str) -> String {
    let rules = [
        (r"\b\d\d:\d\d(:\d\d)?\b", "CLOCK"),
        (r"  \d+(\.\d)?(ms|s)\n", "\n"),
        (r" · idle \d+s", ""),
        (r"\b\d+(\.\d)?(ms|s|m|h)( \d+[sm])?\b", "TIME"),
        (r"━{3,}", "━━━"),
        (r"─{3,}", "───"),
    ];
    rules.iter().fold(screen.to_owned(), |text, (pattern, to)| {
        Regex::new(pattern)
            .unwrap()
            .replace_all(&text, *to)
            .into_owned()
    })
}

#[test]
fn the_console_fits_small_and_large_terminals() {
    for (columns, rows) in [(80, 24), (160, 48)] {
        let test = Test::git()
            .on_path("claude", CLAUDE)
            .program("test.sh", CHECK);
        let args = [
            "run",
            "mend",
            "--name",
            "shop",
            "-m",
            "9",
            "--max-cost",
            "5",
            "--max-tokens",
            "400000",
            "--check",
            "./test.sh",
            "--check",
            "true # lint",
            "--agent",
            "claude",
        ];
        let window = Window::ralph(&test, columns, rows, &args);
        window.until_shows("I continue where the last iteration stopped.");
        // Also what the running iteration has used.
        window.until_shows("46.9k/400k");
        let screen = window.screen();
        let widest = screen
            .lines()
            .filter(|row| row.contains("━━━"))
            .map(|row| row.chars().count());
        assert!(widest.max() == Some(usize::from(columns) - 1), "{screen}");
        assert_snapshot(&format!("console/{columns}x{rows}"), &steady(&screen));
        test.ralph(&["stop", "shop"]).exits(0);
        window.ends_with(130);
    }
}

#[test]
fn keys_ask_for_what_commands_ask_for() {
    let test = Test::new().script(PATIENT);
    let window = Window::ralph(
        &test,
        80,
        24,
        &["run", "mend", "--name", "a", "--agent", AGENT],
    );
    window.until_shows("│ ready");
    window.until_shows("p pause  s say  q stop  d detach  ? help");
    window.press("?");
    window.until_shows("p  pause after this iteration; again: take it back");
    window.press("?");
    until("no help", || {
        !window.screen().contains("again: take it back")
    });
    window.press("p");
    window.until_shows("→ pauses after this iteration");
    window.press("p");
    window.until_shows("· continuing: the request was taken back");
    window.press("s");
    window.until_shows("say (Enter sends, Esc cancels) ›");
    window.press("not this");
    window.press_key("Escape");
    window.until_shows("p pause");
    window.press("suse the new pqd");
    window.press_key("C-w");
    window.press("parser");
    window.until_shows("› use the new parser");
    window.press_key("Enter");
    window.until_shows("your message will be in the next prompt");
    window.press("q");
    window.until_shows("→ stops after this iteration");
    test.write("go", "");
    window.ends_with(130);
    let asked: Vec<_> = test
        .events("a", "asked")
        .iter()
        .map(|event| event["wish"].clone())
        .collect();
    assert_eq!(asked, ["pause", "go", "stop"]);
    let answers = test.events("a", "answered");
    assert_eq!(
        (answers.len(), &answers[0]["text"]),
        (1, &"use the new parser".into())
    );
}

#[test]
fn a_paste_is_no_key_and_sends_nothing() {
    let test = Test::new().script(PATIENT);
    let window = Window::ralph(
        &test,
        80,
        24,
        &["run", "mend", "--name", "a", "--agent", AGENT],
    );
    window.until_shows("p pause");
    let paste = |text: &str| {
        window.tmux(&["set-buffer", text, ";", "paste-buffer", "-p", "-t", "w"]);
    };
    paste("pqd\n");
    window.press("s");
    window.until_shows("say (");
    paste("one\ntwo");
    window.until_shows("› one two");
    assert!(test.events("a", "asked").is_empty() && test.events("a", "answered").is_empty());
    window.press_key("Enter");
    until("the message", || test.events("a", "answered").len() == 1);
    test.write("go", "");
    window.ends_with(0);
    assert!(test.events("a", "asked").is_empty());
}

#[test]
fn a_loop_moves_to_the_background_after_its_iteration() {
    let script = "
iteration 1
  say ready
  sh until test -e go; do sleep 0.02; done
iteration 2
  sh until test -e end; do sleep 0.02; done
  promise COMPLETE
";
    for uses_tmux in [true, false] {
        let test = Test::new().script(script);
        let test = test.file(".ralph/settings.toml", &format!("tmux = {uses_tmux}\n"));
        let args = ["run", "mend", "--name", "a", "--trust", "--agent", AGENT];
        let window = Window::ralph(&test, 80, 24, &args);
        window.until_shows("p pause");
        window.press("d");
        window.until_shows("! continuing in the background after this iteration");
        test.write("go", "");
        window.ends_with(0);
        let place = if uses_tmux {
            "tmux: ralph:a"
        } else {
            "background"
        };
        window.until_shows(&format!("a continues in the background ({place})"));
        until("the second iteration", || {
            test.events("a", "started").len() == 2
        });
        assert_eq!(test.status("a")["status"], "running");
        assert_eq!(tmux(&test, &["ls"]).is_empty(), !uses_tmux);
        if uses_tmux {
            until("the panel in the window", || {
                let screen = tmux(&test, &["capture-pane", "-p", "-t", "ralph:a"]);
                screen.contains("p pause  s say  q stop  ? help")
            });
            tmux(&test, &["send-keys", "-t", "ralph:a", "-l", "p"]);
            until("the request", || {
                test.status("a")["wish"] == "pause" || test.events("a", "asked").len() == 3
            });
            tmux(&test, &["send-keys", "-t", "ralph:a", "-l", "p"]);
            until("the second request", || {
                test.events("a", "asked").len() == 4
            });
        }
        test.write("end", "");
        test.ralph(&["wait", "a"]).exits(0);
    }
}

#[test]
fn the_terminal_is_restored_however_the_loop_ends() {
    let ralph = env!("CARGO_BIN_EXE_ralph");
    for signal in ["", "-KILL"] {
        let test = Test::new().script(PATIENT);
        let line = format!(
            "stty -g > before; '{ralph}' run mend --name a --agent {AGENT}; stty -g > after; read line; echo got $line; sleep 60"
        );
        let window = Window::start(&test, 80, 24, &line);
        window.until_shows("p pause");
        if signal.is_empty() {
            test.write("go", "");
        } else {
            let opened = &test.events("a", "opened")[0];
            test.sh(&format!("kill {signal} {}", opened["pid"]));
        }
        until("the end", || test.workspace().join("after").exists());
        until("the settings", || test.read("after").ends_with('\n'));
        assert_eq!(test.read("before"), test.read("after"));
        window.press("typed");
        window.press_key("Enter");
        window.until_shows("got typed");
    }
}

#[test]
fn a_resized_terminal_gets_a_panel_that_fits() {
    let test = Test::new().script(PATIENT);
    let window = Window::ralph(
        &test,
        120,
        24,
        &["run", "mend", "--name", "a", "--agent", AGENT],
    );
    window.until_shows("p pause");
    for columns in ["60", "100"] {
        window.tmux(&["resize-window", "-t", "w", "-x", columns]);
        let columns: usize = columns.parse().unwrap();
        until("a panel of this width", || {
            let screen = window.screen();
            let title: Vec<_> = screen
                .lines()
                .filter(|row| row.contains("── a · "))
                .collect();
            matches!(title[..], [title] if title.chars().count() == columns - 1)
        });
    }
    test.write("go", "");
    window.ends_with(0);
}

#[test]
fn ctrl_c_stops_after_the_iteration_and_ctrl_z_does_nothing() {
    let test = Test::new().script(PATIENT);
    let window = Window::ralph(
        &test,
        80,
        24,
        &["run", "mend", "--name", "a", "--agent", AGENT],
    );
    window.until_shows("p pause");
    window.press_key("C-z");
    window.press_key("C-c");
    window.until_shows("stopping after this iteration; Ctrl-C again kills it now");
    window.press_key("C-c");
    window.ends_with(130);
    assert_eq!(test.events("a", "asked").len(), 2);
}

#[test]
fn a_terminal_without_colors_or_utf_8_gets_plain_lines() {
    for setting in ["NO_COLOR=1", "LC_ALL=C", "TERM=dumb"] {
        let test = Test::new().script("iteration 1\n  say **one**\n  promise COMPLETE\n");
        let ralph = env!("CARGO_BIN_EXE_ralph");
        let line = format!("{setting} exec '{ralph}' run mend --name a --agent {AGENT}");
        let window = Window::start(&test, 80, 24, &line);
        window.ends_with(0);
        let screen = window.screen();
        assert!(
            screen.contains("\n[ralph] a: iteration 1 completed ("),
            "{screen}"
        );
        assert!(screen.contains(" **one**\n"), "{screen}");
    }
}
