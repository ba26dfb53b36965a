//! The loops that are recorded: one scene for each way a loop can end, and for each kind of event.

use super::Stage;
use crate::crash::crash;
use crate::kit::{Live, until};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// One loop, or a few that belong together.
pub(super) struct Scene {
    pub(super) name: &'static str,
    /// The scripted agent's script; see docs/scripted-agents.md.
    pub(super) script: &'static str,
    /// Runs the loops to their end and returns what `ralph run --json` printed.
    pub(super) play: fn(&Stage) -> String,
    /// The arguments after `ralph resume NAME` that continue the recorded loop to a successful end;
    /// `None` if it cannot be resumed.
    pub(super) resume: Option<&'static [&'static str]>,
}

/// Creates the file `here`, then waits for `go`.
const WAITS: &str = "sh touch here; until test -e go; do sleep 0.01; done";
const CHECK: [&str; 2] = ["--check", "grep -q whole roof"];
const SESSION: &str = "6253c6c3-451f-4aa4-ae4d-91ee859fbae3";

pub(super) const SCENES: &[Scene] = &[
    Scene {
        name: "done-checks",
        script: "iteration 1
          say Half of it is there.
          write roof
            | half
          cost 0.02
        iteration 2
          replace roof
            - half
            + whole
          cost 0.03
          say <commit>Close the roof</commit>
          promise COMPLETE",
        play: |stage| run(stage, &[&CHECK[..], &["--scm", "commit"]].concat(), 0),
        resume: None,
    },
    Scene {
        name: "done-promise",
        script: "iteration 1
          say Not yet.
        iteration 2
          promise COMPLETE",
        play: |stage| run(stage, &[], 0),
        resume: None,
    },
    Scene {
        name: "done-pattern",
        script: "iteration 1
          say The roof is closed.
          hang",
        play: |stage| run(stage, &["--done-pattern", "roof is closed"], 0),
        resume: None,
    },
    Scene {
        name: "limit-iterations",
        script: "iteration 1-2
          say Nothing I could do.
        iteration *
          write roof
            | whole
          promise COMPLETE",
        play: |stage| run(stage, &[&CHECK[..], &["-m", "2"]].concat(), 1),
        resume: None,
    },
    Scene {
        name: "limit-failures",
        script: "iteration 1-2
          say The compiler is missing.
          exit 1
        iteration *
          promise COMPLETE",
        play: |stage| {
            let live = start(stage, &["--max-failures", "2", "--backoff", "1h..1h"]);
            live.until_out("ended");
            until("the rest", || stage.status("loop")["resting_until"].is_string());
            stage.ralph(&["resume", "loop", "--now"]).exits(0);
            live.end().exits(1).out
        },
        resume: Some(&[]),
    },
    Scene {
        name: "timeout",
        script: "iteration 1
          hang",
        play: |stage| run(stage, &["--iteration-timeout", "300ms", "-m", "1"], 1),
        resume: None,
    },
    Scene {
        name: "blocked",
        script: "iteration 1
          cost 0.01
          blocked Which port should the server use?
        iteration *
          cost 0.01
          promise COMPLETE",
        play: |stage| run(stage, &[], 3),
        resume: Some(&["--answer", "Port 8080."]),
    },
    Scene {
        name: "waiting",
        script: "iteration 1
          exit 42
        iteration *
          promise COMPLETE",
        play: |stage| run(stage, &[], 3),
        resume: Some(&[]),
    },
    Scene {
        name: "paused",
        script: "iteration 1
          sh touch here; until test -e go; do sleep 0.01; done
        iteration *
          promise COMPLETE",
        play: |stage| {
            let live = start(stage, &[]);
            stage.until_file("here");
            for (args, event) in [
                (&["say", "loop", "Use slate."][..], "answered"),
                (&["set", "loop", "max-iterations=7"], "changed"),
                (&["pause", "loop"], "asked"),
            ] {
                stage.ralph(args).exits(0);
                until(event, || !stage.test.events("loop", event).is_empty());
            }
            stage.test.write("go", "");
            live.end().exits(3).out
        },
        resume: Some(&[]),
    },
    Scene {
        name: "stopped",
        script: "iteration 1
          sh touch here
          hang
        iteration *
          promise COMPLETE",
        play: |stage| {
            let live = start(stage, &[]);
            stage.until_file("here");
            stage.ralph(&["stop", "loop"]).exits(0);
            live.end().exits(130).out
        },
        resume: Some(&[]),
    },
    Scene {
        name: "fatal-not-found",
        script: "",
        play: |stage| {
            stage.program("agent", "#!/bin/sh\necho 'I remove myself.'\nrm agent\n");
            let args = ["run", "Close the roof.", "--name", "loop", "--json", "--", "./agent"];
            stage.ralph(&args).exits(1).out
        },
        resume: Some(&[]),
    },
    Scene {
        name: "fatal-permission",
        script: "",
        play: |stage| {
            stage.program("agent", "#!/bin/sh\necho 'I lock myself out.'\nchmod a-x agent\n");
            let args = ["run", "Close the roof.", "--name", "loop", "--json", "--", "./agent"];
            stage.ralph(&args).exits(1).out
        },
        resume: Some(&[]),
    },
    Scene {
        name: "crashed",
        script: "iteration 1
          sh touch here; until test -e go; do sleep 0.01; done
        iteration *
          write roof
            | whole
          promise COMPLETE",
        play: |stage| {
            let live = start(stage, &CHECK);
            stage.until_file("here");
            live.until_out("spawned");
            let out = live.out();
            crash(live);
            stage.test.write("go", "");
            until("the end of the agent", || stage.test.survivors().is_empty());
            out
        },
        resume: Some(&[]),
    },
    Scene {
        name: "worktree",
        script: "iteration 1
          write roof
            | half
        iteration 2
          write roof
            | whole
          promise COMPLETE",
        play: |stage| run(stage, &[&CHECK[..], &["--worktree"]].concat(), 0),
        resume: None,
    },
    Scene {
        name: "family",
        script: "iteration 1
          sh ralph spawn 'Close the gutter.' --name child --no-tmux --no-promise -m 1 --agent script:../child.script
          promise COMPLETE",
        play: |stage| {
            stage.test.write("../child.script", &format!("iteration 1\n {WAITS}\n"));
            let live = start(stage, &[]);
            stage.until_file("here");
            until("the wait for the child", || stage.ralph(&["status", "loop"]).out.contains("child loops"));
            stage.test.write("go", "");
            live.end().exits(0).out
        },
        resume: None,
    },
    Scene {
        name: "refunded",
        script: "",
        play: |stage| {
            stage.test.write(
                ".ralph/settings.toml",
                "probe = '50ms..50ms'\n[agents.mine]\ncommand = './agent'\n\
                 [[agents.mine.reason]]\nmeans = 'usage-limit'\npattern = 'usage limit reached'\n",
            );
            stage.program(
                "agent",
                "#!/bin/sh\ntest -e seen && echo '<promise>COMPLETE</promise>' && exit\ntouch seen\n\
                 echo 'usage limit reached'\nexit 1\n",
            );
            let args = ["run", "Close the roof.", "--name", "loop", "--json", "--agent", "mine", "-m", "1", "--trust"];
            stage.ralph(&args).exits(0).out
        },
        resume: None,
    },
    Scene {
        name: "session",
        script: "",
        play: |stage| {
            hook(stage, "prompt", &json!({ "prompt": "/ralph-loop Close the roof --completion-promise CLOSED" }));
            hook(stage, "stop", &json!({ "last_assistant_message": "Half of it is there." }));
            hook(stage, "failure", &json!({ "error": "overloaded", "last_assistant_message": "API Error: 529" }));
            hook(stage, "stop", &json!({ "last_assistant_message": "<promise>CLOSED</promise>" }));
            String::new()
        },
        resume: None,
    },
];

/// Starts a loop with the scripted agent.
fn start(stage: &Stage, args: &[&str]) -> Live {
    let run = [
        "run",
        "Close the roof.",
        "--name",
        "loop",
        "--json",
        "--agent",
        "script:../agent.script",
    ];
    stage.start(&[&run[..], args].concat())
}

fn run(stage: &Stage, args: &[&str], code: i32) -> String {
    start(stage, args).end().exits(code).out
}

/// Calls a hook as Claude Code does in a session.
fn hook(stage: &Stage, verb: &str, fields: &Value) {
    let mut input = json!({
        "session_id": SESSION,
        "transcript_path": stage.test.root().join("transcript.jsonl"),
        "cwd": stage.test.workspace(),
        "permission_mode": "default",
        "hook_event_name": if verb == "stop" { "Stop" } else { "Other" },
    });
    input
        .as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let mut command = stage.command(&["hook", verb, "--client", "claude"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("ralph starts");
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.to_string().as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success(), "hook {verb}");
}
