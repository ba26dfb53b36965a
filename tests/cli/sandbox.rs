//! Real CLIs in a sandbox: they do their work, and reach nothing else.

use crate::clis::Cli;
use crate::scenes::promise;
use crate::stage::Stage;
use serde_json::Value;
use std::fs;

/// Defines one test per CLI and kind of sandbox, in modules that `run.sh` can leave out: by the CLI,
/// and by the kind of sandbox.
macro_rules! with {
    ($($kind:ident $flag:literal: $($name:ident $cli:ident)*;)*) => {
        $(mod $kind { $(mod $name {
            use crate::clis::$cli;

            #[test]
            fn works_and_reaches_nothing_else() {
                super::super::works_and_reaches_nothing_else(&$cli, $flag);
            }
        })* })*
    };
}

with! {
    needs_bwrap "--sandbox":
        claude CLAUDE codex CODEX copilot COPILOT droid DROID gemini GEMINI opencode OPENCODE pi PI qwen QWEN;
    needs_landlock "--sandbox=landlock":
        claude CLAUDE codex CODEX copilot COPILOT droid DROID gemini GEMINI opencode OPENCODE pi PI qwen QWEN;
}

/// The agent writes a file, runs a command that commits it and tries to leave the sandbox, and
/// promises that it is done.
fn works_and_reaches_nothing_else(cli: &Cli, flag: &str) {
    let stage = Stage::set(cli, []);
    stage.home_file(".ssh/id", "a secret");
    let command = "git add one.txt && git commit -q -m mine; touch ~/escaped; cat ~/.ssh/id > stolen.txt; true";
    stage.model.add([
        (cli.write)(&stage.path("one.txt"), "hello"),
        (cli.shell)(command),
        promise(),
    ]);
    stage.run(&[flag, "--approve", "all", "-m", "1"]).exits(0);
    let report: Value = stage.reports().remove(0);
    assert_eq!(report["finished"], true, "{report}");
    assert_eq!(stage.test.read("one.txt").trim(), "hello");
    assert_eq!(stage.test.sh("git log -1 --format=%s").trim(), "mine");
    assert_eq!(stage.test.read("stolen.txt"), "");
    let home = stage.test.root().join("home");
    assert!(!home.join("escaped").exists());
    assert_eq!(
        fs::read_to_string(home.join(".ssh/id")).unwrap(),
        "a secret"
    );
    stage.model.assert_played(3);
}

mod own_sandbox {
    mod needs_landlock {
        use crate::clis::CODEX;
        use crate::stage::Stage;

        /// Inside Landlock it would fail, so the loop does not begin.
        #[test]
        fn codex_is_refused_with_its_own_sandbox() {
            let stage = Stage::set(&CODEX, []);
            stage
                .run(&["--sandbox=landlock", "--approve", "edits"])
                .exits(2)
                .complains("runs commands in a sandbox of its own")
                .complains("use --sandbox=bwrap");
        }
    }
}

mod home_settings {
    mod needs_bwrap {
        use crate::clis::CLAUDE;
        use crate::scenes::promise;
        use crate::stage::Stage;

        /// Without `CLAUDE_CONFIG_DIR`, Claude Code's settings are in the home directory itself,
        /// which is read-only.
        #[test]
        fn claude_works_with_settings_in_the_home_directory() {
            for settings in [Some("{}"), None] {
                let mut stage = Stage::set(&CLAUDE, [promise()]);
                stage.unset("CLAUDE_CONFIG_DIR");
                if let Some(text) = settings {
                    stage.home_file(".claude.json", text);
                }
                stage.run(&["--sandbox", "-m", "1"]).exits(0);
            }
        }
    }
}
