//! Hostile repositories: commands that only look run no program that the repository's git settings
//! name.

use crate::kit::{RUN_ONCE, Test};
use std::path::PathBuf;

/// What a hostile repository sets, and the git command that would run the program.
struct Trap {
    name: &'static str,
    /// Creates the trap. `$CANARY` is a program that leaves a file when it runs.
    set: &'static str,
    /// A plain git command that falls into the trap, to prove that it works.
    git: &'static str,
}

const TRAPS: &[Trap] = &[
    Trap {
        name: "clean filter",
        set: "echo '* filter=evil' > .git/info/attributes; git config filter.evil.clean \"$CANARY\"; \
              git config filter.evil.required true",
        git: "git status",
    },
    Trap {
        name: "filter process",
        set: "echo '* filter=evil' > .gitattributes; git config filter.evil.process \"$CANARY\"",
        git: "git status",
    },
    Trap {
        name: "filter with an odd name",
        set: "echo \"* filter=e'v=i.l\" > .gitattributes; git config \"filter.e'v=i.l.clean\" \"$CANARY\"",
        git: "git status",
    },
    Trap {
        name: "filter of included settings",
        set: "echo '* filter=evil' > .gitattributes; git config include.path more; \
              git config --file .git/more filter.evil.clean \"$CANARY\"",
        git: "git status",
    },
    Trap {
        name: "file system monitor",
        set: "git config core.fsmonitor \"$CANARY\"",
        git: "git status",
    },
    Trap {
        name: "hook",
        set: "mkdir -p hooks; cp \"$CANARY\" hooks/post-index-change; git config core.hooksPath hooks",
        git: "git add -A",
    },
    Trap {
        name: "external diff",
        set: "git config diff.external \"$CANARY\"; echo more >> README",
        git: "git diff",
    },
    Trap {
        name: "diff command",
        set: "echo '* diff=evil' > .gitattributes; git config diff.evil.command \"$CANARY\"; echo more >> README",
        git: "git diff",
    },
    Trap {
        name: "text conversion",
        set: "echo '* diff=evil' > .gitattributes; git config diff.evil.textconv \"$CANARY\"; echo more >> README",
        git: "git diff",
    },
    Trap {
        name: "signatures",
        set: "git config log.showSignature true; git config gpg.program \"$CANARY\"; \
              git cat-file commit HEAD > c; sed -i '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n x\\n -----END PGP SIGNATURE-----' c; \
              git reset -q --soft \"$(git hash-object -t commit -w c)\"; rm c",
        git: "git log",
    },
    Trap {
        name: "connection for a missing object",
        set: "git config extensions.partialClone origin; git config core.repositoryFormatVersion 1; \
              git config remote.origin.promisor true; git config remote.origin.url ssh://localhost/x; \
              git config core.sshCommand \"$CANARY\"; git ls-tree HEAD | cut -c13-52 | \
              while read id; do rm -f .git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-); done; echo more >> README",
        git: "git diff",
    },
    Trap {
        name: "submodule",
        set: "git init -q -b main sub && git -C sub commit -q --allow-empty -m x && echo 1 > sub/f && \
              git -C sub add f && git -C sub commit -q -m f && \
              git -c protocol.file.allow=always submodule --quiet add ./sub sub 2>/dev/null; \
              git commit -q -m sub; echo '* filter=evil' > \"$(git -C sub rev-parse --absolute-git-dir)/info/attributes\"; \
              git -C sub config filter.evil.clean \"$CANARY\"; touch -d '2 hours ago' sub/f",
        git: "git status",
    },
    Trap {
        name: "recorded repository without a declaration",
        set: "git init -q -b main sub && echo 1 > sub/f && git -C sub add f && git -C sub commit -q -m f && \
              git add sub 2>/dev/null; git commit -q -m sub; \
              echo '* filter=evil' > sub/.git/info/attributes; \
              git -C sub config filter.evil.clean \"$CANARY\"; touch -d '2 hours ago' sub/f",
        git: "git status",
    },
];

fn canary(test: &Test) -> PathBuf {
    test.root().join("ran")
}

/// Creates a repository with this trap.
fn trapped(trap: &Trap) -> Test {
    let test = Test::git().script("iteration *\n say hello\n promise COMPLETE\n");
    let ran = canary(&test);
    let program = format!(
        "#!/bin/sh\necho \"$0 $*\" >> '{}'\ncase \"$*\" in *localhost*) exit 1 ;; esac\ncat\n",
        ran.display()
    );
    let test = test.program("../canary", &program);
    let program = test.root().join("canary");
    test.sh("mkdir -p .git/info");
    test.sh(&format!("CANARY='{}'; {}", program.display(), trap.set));
    // The content is the same, but git must read it to know.
    test.sh("touch -d '1 hour ago' README");
    let _ = std::fs::remove_file(ran);
    test
}

#[track_caller]
fn nothing_ran(test: &Test, trap: &str, command: &str) {
    let ran = std::fs::read_to_string(canary(test)).unwrap_or_default();
    assert_eq!(ran, "", "{trap}: ralph {command}");
}

/// Looks at repositories with some of the traps.
fn look_at(traps: &[Trap]) {
    for trap in traps {
        let test = trapped(trap);
        let script = ["--agent", "script:../agent.script"];
        let dry = [&["run", "x", "--dry-run", "--check", "true"], &script[..]].concat();
        for args in [
            &["doctor"][..],
            &[&dry[..], &["--worktree"]].concat(),
            &[&dry[..], &["--scm", "commit"]].concat(),
        ] {
            test.ralph(args);
            nothing_ran(&test, trap.name, &args.join(" "));
        }
        let run = [&["run", "x", "--name", "a", "-m", "2"], &script[..]].concat();
        test.ralph(&run).exits(0);
        nothing_ran(&test, trap.name, "run");
        // Otherwise, the test would prove nothing.
        let _ = test.command("sh").args(["-c", trap.git]).output();
        let ran = canary(&test).exists();
        assert!(ran, "{}: {} is no trap", trap.name, trap.git);
    }
}

#[test]
fn looking_at_a_repository_runs_none_of_its_filters() {
    look_at(&TRAPS[..4]);
}

#[test]
fn looking_at_a_repository_runs_none_of_its_hooks_and_diff_programs() {
    look_at(&TRAPS[4..9]);
}

#[test]
fn looking_at_a_repository_checks_no_signature_connects_to_nothing_and_trusts_no_inner_one() {
    look_at(&TRAPS[9..]);
}

#[test]
fn an_embedded_bare_repository_is_not_used() {
    let test = Test::git().script("iteration *\n promise COMPLETE\n");
    let ran = canary(&test);
    test.sh(&format!(
        "git init -q --bare evil && cd evil && git config core.bare false && git config core.worktree .. && \
         git config core.fsmonitor 'touch {}; false' && git add ../README",
        ran.display()
    ));
    let _ = std::fs::remove_file(&ran);
    for args in [
        &["doctor"][..],
        &[
            "run",
            "x",
            "--dry-run",
            "--agent",
            "script:../../agent.script",
        ],
    ] {
        let mut command = test.ralph_command(args);
        command.current_dir(test.workspace().join("evil"));
        let _ = test.start_command(command).end();
        assert!(!ran.exists(), "{args:?}");
    }
    test.sh("cd evil && git status");
    assert!(ran.exists(), "git itself uses it");
}

#[test]
fn rm_looks_for_unsaved_work_without_running_merge_drivers() {
    let test = Test::git().script("iteration *\n append README\n  | more\n promise COMPLETE\n");
    let run = [
        "run",
        "x",
        "--name",
        "a",
        "--worktree",
        "--agent",
        "script:../agent.script",
    ];
    test.ralph(&run).exits(0);
    let ran = canary(&test);
    test.sh(&format!(
        "echo '* merge=evil' > .git/info/attributes && git config merge.evil.driver 'touch {}; true' && \
         echo other >> README && git commit -q -a -m other",
        ran.display()
    ));
    test.ralph(&["rm", "a", "--worktree"])
        .exits(2)
        .complains("would lose work: 1 commit");
    assert!(!ran.exists());
    let _ = test
        .command("git")
        .args(["merge-tree", "--write-tree", "main", "ralph/a"])
        .output();
    assert!(ran.exists(), "the driver is a trap");
}

#[test]
fn a_commit_runs_the_filters_that_the_user_configured() {
    let test = Test::git().script("iteration *\n write made.big\n  | yes\n");
    test.write(".gitattributes", "*.big filter=upper\n");
    test.sh("git add -A && git commit -q -m attributes && git config filter.upper.clean 'tr a-z A-Z' && git config filter.upper.smudge 'tr A-Z a-z'");
    let run = [
        "run",
        "x",
        "--name",
        "a",
        "--worktree",
        "--agent",
        "script:../agent.script",
    ];
    test.ralph(&[&run[..], &["--check", "test -f made.big", "--until-green"]].concat())
        .exits(0)
        .says("worktree commit: 1 file (made.big)");
    assert_eq!(test.sh("git show ralph/a:made.big"), "YES\n");
    test.sh("git merge -q ralph/a");
    test.ralph(&["rm", "a", "--worktree"]).exits(0);
}

#[test]
fn a_working_tree_that_the_configuration_moves_is_refused() {
    let test = Test::git().file("../home/mine", "private\n");
    // A directory around the workspace, and one beside it.
    for dir in ["../..", "../../home"] {
        test.sh(&format!("git config core.worktree {dir}"));
        for args in [
            &["run", "x", "--name", "a", "-m", "1", "--", "true"][..],
            &["run", "x", "--scm", "commit", "--dry-run", "--", "true"],
        ] {
            test.ralph(args)
                .exits(2)
                .complains("moves its working tree to ");
        }
    }
    test.sh("git config --unset core.worktree");
    test.ralph(&RUN_ONCE).exits(0);
}

#[test]
fn a_link_in_place_of_ralph_s_directory_leads_nowhere() {
    for (link, target) in [
        (".ralph", "../elsewhere"),
        (".ralph/task", "../../elsewhere"),
    ] {
        let test = Test::git();
        std::fs::create_dir(test.root().join("elsewhere")).unwrap();
        test.sh(&format!("mkdir -p $(dirname {link}) && ln -s {target} {link} && git add -f . && git commit -qm x"));
        test.ralph(&RUN_ONCE)
            .exits(2)
            .complains(&format!("{link} is a link to a directory outside "));
        let mut written = std::fs::read_dir(test.root().join("elsewhere")).unwrap();
        assert!(written.next().is_none());
        // Inside the repository, a link is the project's own business.
        test.sh(&format!(
            "rm {link} && mkdir ours && ln -s $PWD/ours {link}"
        ));
        test.ralph(&RUN_ONCE).exits(0);
    }
}
