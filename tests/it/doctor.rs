//! `ralph doctor`, through the binary, on simulated machines whose programs are stubs.

use crate::kit::{Done, Test, alive, until};
use serde_json::Value;
use std::fs;

/// Simulates a machine on which only these programs are installed.
fn machine(programs: &[(&str, &str)]) -> Test {
    let mut test = Test::new().file("../bin/.keep", "");
    for (name, body) in programs {
        let body = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{body}\n");
        test = test.program(&format!("../bin/{name}"), &body);
    }
    test
}

fn doctor(test: &Test, args: &[&str]) -> Done {
    let mut command = test.ralph_command(&[&["doctor"], args].concat());
    command.env("PATH", test.root().join("bin"));
    test.start_command(command).end()
}

fn report(test: &Test) -> Value {
    serde_json::from_str(&doctor(test, &["--json"]).out).unwrap()
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

const GIT: (&str, &str) = ("git", "exec git \"$@\"");
const CLAUDE: (&str, &str) = ("claude", "echo '2.1.34 (Claude Code)'");

#[test]
fn doctor_reports_a_machine_that_can_run_a_loop() {
    let test = machine(&[GIT, CLAUDE, ("codex", "echo codex-cli 0.46.0")]);
    let done = doctor(&test, &[])
        .exits(0)
        .says("✔ a loop can run here")
        .says("✔ claude")
        .says("2.1.34");
    assert!(
        done.out.contains("✔ codex") && done.out.contains("– tmux"),
        "{}",
        done.out
    );
    let report = report(&test);
    assert_eq!(report["ready"], true);
    assert_eq!(named(&report["agents"], "claude")["version"], "2.1.34");
    assert_eq!(named(&report["agents"], "codex")["version"], "0.46.0");
    assert_eq!(named(&report["tools"], "tmux")["installed"], false);
}

#[test]
fn doctor_shows_what_pays_and_how_to_log_in_if_nothing_does() {
    let test = machine(&[GIT, CLAUDE, ("codex", "echo codex-cli 0.46.0")]);
    let look = |key: &str, args: &[&str]| {
        let mut command = test.ralph_command(&[&["doctor"], args].concat());
        command
            .env("PATH", test.root().join("bin"))
            .env("ANTHROPIC_API_KEY", key);
        test.start_command(command).end().exits(0).out
    };
    let line = |out: &str, name: &str| {
        out.lines()
            .find(|line| line.contains(&format!("✔ {name} ")))
            .expect("its line")
            .to_owned()
    };
    let out = look("", &[]);
    assert!(
        line(&out, "claude").contains("log in: start claude"),
        "{out}"
    );
    let out = look("sk-ant-dummy", &[]);
    assert!(
        line(&out, "claude").ends_with("uses the key in ANTHROPIC_API_KEY"),
        "{out}"
    );
    assert!(
        line(&out, "codex").contains("log in: run codex login"),
        "{out}"
    );
    test.write("../home/.claude/.credentials.json", "{}");
    let out = look("sk-ant-dummy", &[]);
    let login =
        "uses its own login (~/.claude/.credentials.json); ANTHROPIC_API_KEY is not passed to it";
    assert!(
        line(&out, "claude").contains(login) && !out.contains("log in: start claude"),
        "{out}"
    );
    assert!(!out.contains("sk-ant-dummy"), "{out}");
    let report: Value = serde_json::from_str(&look("sk-ant-dummy", &["--json"])).unwrap();
    let claude = named(&report["agents"], "claude");
    assert_eq!(
        claude["payer"],
        "its own login (~/.claude/.credentials.json)"
    );
    assert_eq!(
        claude["held_back"],
        serde_json::json!(["ANTHROPIC_API_KEY"])
    );
    test.write(".ralph/settings.toml", "allowApiKey = true\n");
    let out = look("sk-ant-dummy", &[]);
    assert!(
        line(&out, "claude").ends_with("uses the key in ANTHROPIC_API_KEY"),
        "{out}"
    );
}

#[test]
fn missing_programs_are_listed_with_the_command_that_installs_them() {
    let test = machine(&[("apt-get", "exit 1")]);
    let done = doctor(&test, &[])
        .exits(1)
        .says("✘ git")
        .says("apt-get install -y git");
    let done = done
        .says("✘ needed: git: ")
        .says("✘ needed: an agent, such as ")
        .says("– claude");
    assert!(
        done.out
            .contains("npm install -g @anthropic-ai/claude-code"),
        "{}",
        done.out
    );
    for (programs, code) in [(&[GIT][..], 1), (&[CLAUDE], 1), (&[GIT, CLAUDE], 0)] {
        doctor(&machine(programs), &[]).exits(code);
    }
}

#[test]
fn programs_that_hang_prompt_or_fail_are_reported_and_leave_no_process_behind() {
    let hang = "sleep 600 & echo $! >>\"$HOME/pids\"\nsetsid sleep 600 & echo $! >>\"$HOME/pids\"\nsleep 600";
    let ask = "printf 'which one? ' >/dev/tty; read answer </dev/tty; read answer; yes";
    let test = machine(&[
        GIT,
        CLAUDE,
        ("codex", hang),
        ("gemini", "echo node is too old >&2; exit 7"),
        ("pi", "echo 0.9.1 >&2"),
        ("tmux", ask),
    ]);
    let report = report(&test);
    assert_eq!(report["ready"], true, "one good agent is enough");
    let codex = named(&report["agents"], "codex");
    assert_eq!(
        (&codex["installed"], &codex["version"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(codex["trouble"], "did not print its version within 10 s");
    let gemini = named(&report["agents"], "gemini");
    assert_eq!(gemini["works"], false);
    assert_eq!(
        gemini["trouble"],
        "printing its version failed (exit 7): node is too old"
    );
    assert_eq!(named(&report["agents"], "pi")["version"], "0.9.1");
    assert!(named(&report["tools"], "tmux")["trouble"].is_string());
    let pids = fs::read_to_string(test.root().join("home/pids")).unwrap();
    let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2);
    assert_eq!(pids.into_iter().filter(|pid| alive(*pid)).count(), 0);
    assert!(test.survivors().is_empty());
}

#[test]
fn an_interrupted_doctor_stops_the_programs_it_started() {
    let test = machine(&[("claude", "touch \"$HOME/asked\"; sleep 600")]);
    let mut command = test.ralph_command(&["doctor"]);
    command.env("PATH", test.root().join("bin"));
    let live = test.start_command(command);
    until("the question", || test.root().join("home/asked").exists());
    live.signal("INT");
    live.end().exits(130);
    assert!(test.survivors().is_empty());
}

#[test]
fn doctor_changes_neither_the_state_directory_nor_the_workspace() {
    let test = machine(&[GIT, CLAUDE]).script("iteration 1\n  promise COMPLETE\n");
    let report_before = report(&test);
    assert_eq!(report_before["workspace"]["git"], false);
    assert_eq!(report_before["state"]["loops"], serde_json::json!({}));
    assert_eq!(fs::read_dir(test.state_dir()).unwrap().count(), 0);
    test.sh("git init -q -b main && git commit -q --allow-empty -m first");
    test.ralph(&[
        "run",
        "x",
        "--name",
        "a",
        "--agent",
        "script:../agent.script",
    ])
    .exits(0);
    test.write("PROMPT.md", "x\n");
    test.write(".ralph/settings.toml", "");
    let report = report(&test);
    assert_eq!(report["state"]["loops"], serde_json::json!({ "done": 1 }));
    assert_eq!(
        report["state"]["path"],
        test.state_dir().display().to_string()
    );
    assert!(report["state"]["free_bytes"].as_u64().unwrap() > 0);
    let here = &report["workspace"];
    assert_eq!(
        (&here["branch"], &here["prompt_file"]),
        (&"main".into(), &true.into())
    );
    assert_eq!(here["changed_files"], 2, "{here}");
    assert_eq!(
        here["settings"],
        serde_json::json!([".ralph/settings.toml"])
    );
}

#[test]
fn doctor_fails_if_the_state_directory_cannot_be_created() {
    let test = machine(&[GIT, CLAUDE]);
    fs::remove_dir(test.state_dir()).unwrap();
    fs::write(test.state_dir(), "a file").unwrap();
    doctor(&test, &[])
        .exits(1)
        .says("✘ directory")
        .says("needed: a writable state directory");
}

#[test]
#[cfg(target_os = "linux")]
fn kernel_features_are_tested_by_using_them() {
    let report = report(&machine(&[GIT]));
    assert_eq!(named(&report["system"], "subreaper")["available"], true);
    for name in ["pidfd", "landlock", "user namespaces", "views"] {
        assert!(named(&report["system"], name)["note"].is_string());
    }
}

#[test]
fn a_user_s_own_agent_is_never_run_without_arguments() {
    let test = machine(&[
        GIT,
        ("mine", "echo \"mine $# $1\" >>\"$HOME/asked\"; echo 3.2.1"),
    ]);
    for version in ["", "version = []\n"] {
        test.write(
            "../home/.config/ralph/settings.toml",
            &format!("[agents.mine]\ncommand = \"mine\"\n{version}"),
        );
        let done = doctor(&test, &[]).exits(0).says("✔ mine");
        assert!(
            !done
                .out
                .lines()
                .any(|line| line.contains("mine") && line.contains("log in")),
            "{}",
            done.out
        );
    }
    let asked = fs::read_to_string(test.root().join("home/asked")).unwrap();
    assert_eq!(asked, "mine 1 --version\nmine 1 --version\n");
}

#[test]
fn doctor_requires_the_agent_that_the_settings_select() {
    let test = machine(&[GIT, CLAUDE]);
    test.write(".ralph/settings.toml", "agent = 'codex'\n");
    let done = doctor(&test, &[])
        .exits(1)
        .says("needed: the agent that the settings select: ");
    done.says("npm install -g @openai/codex");
    test.write(".ralph/settings.toml", "agent = 'cluade'\n");
    doctor(&test, &[])
        .exits(1)
        .says(".ralph/settings.toml: agent \"cluade\": unknown agent");
    let test = machine(&[GIT]).program("my-agent", "#!/bin/sh\n");
    test.write(".ralph/settings.toml", "[agent]\ncommand = './my-agent'\n");
    doctor(&test, &[])
        .exits(0)
        .says("✔ agent ")
        .says("✔ a loop can run here");
    assert_eq!(report(&test)["agent"], "my-agent");
}

#[test]
fn a_program_with_a_missing_interpreter_is_reported_as_broken() {
    let test = machine(&[GIT, CLAUDE]).program("../bin/goose", "#!/no/such/program\n");
    let found = report(&test);
    let goose = named(&found["agents"], "goose");
    assert_eq!(
        (&goose["installed"], &goose["works"]),
        (&true.into(), &false.into())
    );
    assert!(
        goose["trouble"]
            .as_str()
            .unwrap()
            .contains("its interpreter is missing")
    );
}

#[test]
fn unreadable_settings_and_the_user_s_own_agents_are_reported() {
    let test = machine(&[GIT, ("mine", "echo mine 3.2.1")]);
    test.write(
        "../home/.config/ralph/settings.toml",
        "[agents.mine]\ncommand = [\"mine\"]\nversion = [\"-v\"]\n",
    );
    let found = report(&test);
    assert_eq!(named(&found["agents"], "mine")["version"], "3.2.1");
    assert_eq!(found["ready"], true);
    test.write(".ralph/settings.toml", "maxIteration = 3\n");
    doctor(&test, &[])
        .exits(1)
        .says("✘ settings")
        .says("needed: valid settings: ");
    test.write(".ralph/settings.toml", "minFree = \"900000GiB\"\n");
    doctor(&test, &[]).exits(1).says("needed: disk space");
}

#[test]
fn doctor_runs_no_program_that_project_settings_name() {
    let test = Test::new().program("evil", "#!/bin/sh\ntouch ran\necho 1.0\n");
    test.write(
        ".ralph/settings.toml",
        "[agents.claude]\ncommand = ['./evil']\n[agents.mine]\ncommand = './evil'\n",
    );
    let report: Value = serde_json::from_str(&test.ralph(&["doctor", "--json"]).out).unwrap();
    let agents = report["agents"].as_array().unwrap();
    for name in ["claude", "mine"] {
        let agent = agents.iter().find(|agent| agent["name"] == name).unwrap();
        assert_eq!(
            (&agent["installed"], &agent["version"]),
            (&true.into(), &Value::Null),
            "{agent}"
        );
        assert!(
            agent["trouble"]
                .as_str()
                .unwrap()
                .contains("this directory's settings")
        );
    }
    assert!(!test.workspace().join("ran").exists());
}

#[test]
fn the_unit_resumes_interrupted_loops() {
    let test = Test::new();
    let done = test.ralph(&["doctor", "--unit"]).exits(0);
    let program = env!("CARGO_BIN_EXE_ralph");
    assert!(
        done.out
            .contains(&format!("\nExecStart=-\"{program}\" resume --all\n")),
        "{done:?}"
    );
    for variable in ["PATH=", "RALPH_STATE_DIR="] {
        assert!(
            done.out.contains(&format!("\nEnvironment=\"{variable}")),
            "{done:?}"
        );
    }
    test.ralph(&["doctor", "--unit", "--json"]).exits(2);
}
