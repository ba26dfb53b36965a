//! A loop inside a client's own session: the plugin is installed and used as a user would. Every client runs every scenario.

use crate::clis::{self, Cli};
use crate::kit::{Done, Live};
use crate::model::{Step, Tokens, say};
use crate::stage::{PATIENCE, Stage};
use serde_json::{Value, json};
use std::fs::File;

/// A client, and how a user starts it and types in it.
pub(crate) struct Client {
    cli: &'static Cli,
    /// The command that starts a loop.
    pub(crate) command: &'static str,
    /// The arguments of `ralph` that install the plugin.
    install: &'static [&'static str],
    /// The arguments for a session with a single prompt and no user.
    print: &'static [&'static str],
    /// Writes the settings that a user would have made once, such as trusting the directory.
    pub(crate) prepare: fn(&Stage),
    /// The arguments for an interactive session.
    pub(crate) typed: &'static [&'static str],
    /// Text that is on the screen when the client is ready for typing.
    pub(crate) ready: &'static str,
}

pub(crate) const PRINT: &[&str] = &[
    "-p",
    "--output-format",
    "stream-json",
    "--verbose",
    "--permission-mode",
    "acceptEdits",
];

pub(crate) const CLAUDE: Client = Client {
    cli: &clis::CLAUDE,
    command: "/ralph-loop",
    install: &["claude"],
    print: PRINT,
    prepare: |stage| {
        let place = stage.test.workspace().display().to_string();
        let told = json!({
            "hasCompletedOnboarding": true, "lastOnboardingVersion": "99.0.0", "theme": "dark",
            "customApiKeyResponses": { "approved": ["sk-ant-dummy"], "rejected": [] },
            "projects": { place: { "hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true } },
        });
        stage.home_file(".claude/.claude.json", &told.to_string());
    },
    typed: &[],
    ready: "\u{276f}",
};
pub(crate) const OLD_CLAUDE: Client = Client {
    cli: &clis::OLD_CLAUDE,
    ..CLAUDE
};
pub(crate) const CODEX: Client = Client {
    cli: &clis::CODEX,
    command: "$ralph-loop",
    install: &["codex", "--trust"],
    // Without a network, its plugins take five seconds to fail.
    print: &[
        "exec",
        "--json",
        "--disable",
        "plugins",
        "--dangerously-bypass-approvals-and-sandbox",
    ],
    prepare: |stage| {
        let told = stage.test.read("../home/.codex/config.toml");
        let place = stage.test.workspace();
        let more = format!(
            "[projects.'{}']\ntrust_level = 'trusted'\n",
            place.display()
        );
        stage.home_file(".codex/config.toml", &format!("{told}\n{more}"));
    },
    // In its daemon, a session would keep running after the window is closed.
    typed: &[
        "--disable",
        "plugins",
        "-c",
        "features.daemon_auto_start=false",
    ],
    ready: "\u{203a}",
};

/// Defines one test per client and scenario.
#[macro_export]
macro_rules! in_sessions {
    ($($name:ident $client:ident: $($scene:ident)*;)*) => {
        $(mod $name { $(#[test] fn $scene() { super::$scene(&super::$client); })* })*
    };
}

crate::in_sessions! {
    claude CLAUDE: promise limit budget red_checks promise_over_red_checks two_sessions unreadable_loop_file special_characters long_prompt;
    old_claude OLD_CLAUDE: promise limit budget red_checks promise_over_red_checks two_sessions unreadable_loop_file special_characters long_prompt_for_old_client;
    codex CODEX: promise limit budget red_checks promise_over_red_checks two_sessions unreadable_loop_file special_characters shortened_prompt;
}

/// A stage whose client has the plugin installed.
pub(crate) struct Session {
    pub(crate) stage: Stage,
    pub(crate) client: &'static Client,
}

impl Session {
    pub(crate) fn with(client: &'static Client, steps: impl IntoIterator<Item = Step>) -> Self {
        let session = Self::bare(client, steps);
        session.install().exits(0).says("Installed.");
        session
    }

    /// Like `with`, but without the plugin.
    pub(crate) fn bare(client: &'static Client, steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            stage: Stage::set(client.cli, steps),
            client,
        }
    }

    pub(crate) fn install(&self) -> Done {
        self.ralph(&[&["plugin", "install"], self.client.install].concat())
    }

    /// Runs the real binary with the client's settings.
    pub(crate) fn ralph(&self, args: &[&str]) -> Done {
        self.stage.test.start_command(self.stage.ralph(args)).end()
    }

    /// Runs a session to its end, in which the user types the loop command followed by `text`.
    #[track_caller]
    pub(crate) fn loops(&self, text: &str) -> Done {
        self.begin(&format!("{} {text}", self.client.command))
            .end_within(PATIENCE)
            .exits(0)
    }

    /// Starts a session with this prompt and does not wait for it.
    pub(crate) fn begin(&self, prompt: &str) -> Live {
        let mut command = self.stage.agent();
        command.args(self.client.print).arg(prompt);
        self.stage.test.start_command(command)
    }

    /// Runs a session to its end, with the prompt on standard input.
    pub(crate) fn reads(&self, prompt: &str) -> Done {
        self.stage.test.write("../prompt", prompt);
        let mut command = self.stage.agent();
        command
            .args(self.client.print)
            .stdin(File::open(self.stage.test.root().join("prompt")).unwrap());
        let done = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            code: done.status.code().unwrap_or(-1),
            out: text(&done.stdout),
            err: text(&done.stderr),
        }
    }

    /// Returns the status objects of all loops.
    #[track_caller]
    pub(crate) fn all(&self) -> Vec<Value> {
        let known = self.stage.test.ralph(&["ls", "--json"]).exits(0);
        serde_json::from_str(&known.out).unwrap_or_else(|error| panic!("{error}: {}", known.out))
    }

    /// Returns the status object of the only loop.
    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        let mut all = self.all();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Asserts how the only loop ended, and after how many iterations.
    #[track_caller]
    pub(crate) fn assert_ended(&self, status: &str, reason: &str, iterations: u32) {
        let known = self.status();
        let seen = (
            &known["status"],
            &known["stop_reason"],
            &known["current_iteration"],
        );
        assert_eq!(
            seen,
            (&status.into(), &reason.into(), &iterations.into()),
            "{known:#}"
        );
        assert!(
            !self.loop_file().exists(),
            "the file for people is gone with it"
        );
    }

    /// Returns the path of the loop file, `.claude/ralph-loop.local.md`.
    pub(crate) fn loop_file(&self) -> std::path::PathBuf {
        self.stage
            .test
            .workspace()
            .join(".claude/ralph-loop.local.md")
    }

    /// Returns the last message in the model's `n`th request, counted from 1.
    #[track_caller]
    pub(crate) fn last_input(&self, n: usize) -> String {
        let asked = self.stage.model.asked();
        let body = asked
            .get(n - 1)
            .unwrap_or_else(|| panic!("asked {} times only", asked.len()));
        let messages = body["messages"]
            .as_array()
            .or(body["input"].as_array())
            .expect("messages");
        let of_user = messages
            .iter()
            .rev()
            .take_while(|message| message["role"] != "assistant");
        let texts = of_user.flat_map(|message| match &message["content"] {
            Value::String(text) => vec![text.clone()],
            parts => parts
                .as_array()
                .into_iter()
                .flatten()
                .rev()
                .map(text_of)
                .collect(),
        });
        let texts: Vec<String> = texts.collect();
        texts.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

fn text_of(part: &Value) -> String {
    part["text"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn done() -> Step {
    say("All is well.\n<promise>DONE</promise>")
}

/// The session is blocked with the same prompt until the model makes its promise.
fn promise(client: &'static Client) {
    let session = Session::with(client, [say("One."), say("Not DONE yet."), done()]);
    session.loops("Build a todo API --completion-promise DONE --max-iterations 20");
    session.assert_ended("done", "completed", 3);
    assert!(
        session.last_input(1).contains("ralph loop activated"),
        "{}",
        session.last_input(1)
    );
    for n in [2, 3] {
        let last_input = session.last_input(n);
        assert!(
            last_input.contains("Build a todo API") && !last_input.contains("--max-iterations"),
            "{last_input}"
        );
    }
    session.stage.model.assert_played(3);
}

fn limit(client: &'static Client) {
    let session = Session::with(client, [say("One."), say("Two.")]);
    session.loops("Build it --max-iterations=2 --completion-promise DONE");
    session.assert_ended("failed", "max_iterations", 2);
    session.stage.model.assert_played(2);
}

/// The limit acts on the tokens that the client's own transcript reports.
fn budget(client: &'static Client) {
    let tokens = Tokens {
        input: 1000,
        output: 100,
        ..Tokens::default()
    };
    let answer = say("Not yet.").with_tokens(tokens);
    let session = Session::with(client, std::iter::repeat_n(answer, 20));
    session
        .stage
        .test
        .write(".ralph/settings.toml", "maxTokens = 2000\n");
    session.loops("Build it --max-iterations=20 --completion-promise DONE");
    let known = session.status();
    // A client may write a turn only after the hook has read the transcript, so there may be more
    // than two turns. The old client's transcript has the output tokens that were known when a
    // message began.
    assert_eq!(known["stop_reason"], "budget_exhausted", "{known:#}");
    assert!(known["tokens"].as_u64().unwrap() >= 2002, "{known:#}");
    assert!(
        known["current_iteration"].as_u64().unwrap() >= 2,
        "{known:#}"
    );
}

/// The checks are red, and their output is in the next prompt, until the model has changed the file
/// with its own tool.
fn red_checks(client: &'static Client) {
    let session = Session::with(client, []);
    let stage = &session.stage;
    let write = (client.cli.write)(&stage.path("one.txt"), "hello");
    stage.model.add([
        say("I am done, trust me."),
        write,
        say("Now it says hello."),
    ]);
    session.loops("Write it --check \"grep -H hello one.txt\" --max-iterations 5");
    session.assert_ended("done", "all_checks_passed", 2);
    let last_input = session.last_input(2);
    assert!(
        last_input.contains("grep -H hello one.txt` is red (exit 2)"),
        "{last_input}"
    );
    assert!(
        last_input.contains("one.txt: No such file"),
        "what the check printed: {last_input}"
    );
    stage.model.assert_played(3);
}

/// A promise does not override a red check, and `<blocked>` ends the loop.
fn promise_over_red_checks(client: &'static Client) {
    let steps = [done(), say("<blocked>which database?</blocked>")];
    let session = Session::with(client, steps);
    session.loops("Write it --check false --completion-promise DONE");
    session.assert_ended("blocked", "blocked", 2);
    session.stage.model.assert_played(2);
}

/// Only the session with the loop is blocked; the other ends at its first stop.
fn two_sessions(client: &'static Client) {
    let session = Session::with(client, []);
    let gate = session.stage.test.root().join("sign");
    session
        .stage
        .model
        .add([say("One."), done().when_exists(&gate), say("No loop here.")]);
    let looping = session.begin(&format!(
        "{} Build it --completion-promise DONE",
        client.command
    ));
    crate::kit::until_within(PATIENCE, "the second iteration", || {
        session.stage.model.asked().len() == 2
    });
    session
        .begin("What is the time?")
        .end_within(PATIENCE)
        .exits(0)
        .says("No loop here.");
    assert_eq!(session.stage.model.asked().len(), 3);
    assert_eq!(session.status()["status"], "running");
    std::fs::write(gate, "").unwrap();
    looping.end_within(PATIENCE).exits(0);
    session.assert_ended("done", "completed", 2);
    session.stage.model.assert_played(3);
}

/// An unreadable loop file ends the loop and is renamed.
fn unreadable_loop_file(client: &'static Client) {
    let session = Session::with(client, []);
    let gate = session.stage.test.root().join("sign");
    session
        .stage
        .model
        .add([say("One."), say("Two.").when_exists(&gate)]);
    let looping = session.begin(&format!("{} Build it", client.command));
    crate::kit::until_within(PATIENCE, "the second iteration", || {
        session.stage.model.asked().len() == 2
    });
    let broken = "---\nactive: true\niteration: many\nmax_iterations: 3\n---\nBuild it\n";
    std::fs::write(session.loop_file(), broken).unwrap();
    std::fs::write(gate, "").unwrap();
    looping.end_within(PATIENCE).exits(0);
    let known = session.status();
    assert_eq!(known["status"], "failed", "{known:#}");
    let kept = session
        .loop_file()
        .with_file_name("ralph-loop.local.broken.md");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), broken);
    session.stage.model.assert_played(2);
}

/// No part of a prompt is executed, lost or changed on its way to the model.
fn special_characters(client: &'static Client) {
    let session = Session::with(client, [say("One."), done()]);
    let prompt = "say \"hi\", don't $(touch pwned) `touch pwned`; touch pwned | \\n $HOME %s\n\n---\n  🦀 ¿qué?";
    session.loops(&format!("{prompt} --completion-promise DONE"));
    session.assert_ended("done", "completed", 2);
    assert!(
        session.last_input(2).contains(prompt),
        "{}",
        session.last_input(2)
    );
    let files = session.stage.test.sh("ls -A");
    assert!(!files.contains("pwned"), "{files}");
}

/// A prompt of one megabyte on standard input comes back whole at every stop.
fn long_prompt(client: &'static Client) {
    assert_comes_back_whole(client, 60_000);
}

/// A shorter prompt: the old client takes minutes for longer command arguments.
fn long_prompt_for_old_client(client: &'static Client) {
    assert_comes_back_whole(client, 1_000);
}

fn assert_comes_back_whole(client: &'static Client, times: usize) {
    let session = Session::with(client, [say("One."), done()]);
    let prompt = "a long story \u{1f980} ".repeat(times);
    session
        .reads(&format!(
            "{} {prompt} --completion-promise DONE",
            client.command
        ))
        .exits(0);
    session.assert_ended("done", "completed", 2);
    let last_input = session.last_input(2);
    assert!(
        last_input.contains(prompt.trim()),
        "{} bytes of {}",
        last_input.len(),
        prompt.len()
    );
}

/// Codex truncates long prompts: the model gets the path of a file with the whole prompt.
fn shortened_prompt(client: &'static Client) {
    let session = Session::with(client, [say("One."), done()]);
    let prompt = format!("Begin. {}", "a long & <story> ".repeat(60_000));
    session
        .reads(&format!(
            "{} {prompt} --completion-promise DONE",
            client.command
        ))
        .exits(0);
    session.assert_ended("done", "completed", 2);
    let last_input = session.last_input(2);
    assert!(
        last_input.contains("Begin. a long") && !last_input.contains("truncated"),
        "{last_input}"
    );
    let path = last_input
        .split("read all of it in ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .expect("a path");
    assert_eq!(std::fs::read_to_string(path).unwrap().trim(), prompt.trim());
}
