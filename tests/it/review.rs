//! Added lines that a person should read: suppressions and suspicious lines, named and never judged.

use crate::kit::Test;
use serde_json::Value;

/// Runs an agent that is one shell command and whose work counts as done.
fn done(test: &Test, agent: &str) -> crate::kit::Done {
    let agent = format!("{agent}\necho '<promise>COMPLETE</promise>'");
    let args = ["run", "x", "--name", "a", "-m", "1", "--check", "true"];
    test.ralph(&[&args[..], &["--", "sh", "-c", &agent]].concat())
        .exits(0)
}

fn project() -> Test {
    let test = Test::git()
        .file(
            "app/report.py",
            "import os\n\n\ndef total(rows):\n    l = sum(rows)\n    return l\n",
        )
        .file(
            "src/shop.ts",
            "export function price(n: number): string {\n  return n\n}\n",
        )
        .file("old.py", "import re  # noqa\nprint(re)\n")
        .file("bin/tool.min.js", "a\n");
    test.sh("git add -A && git commit -qm start");
    test
}

/// Returns the lines of one kind as `path:line what`.
fn lines(test: &Test, kind: &str) -> Vec<String> {
    let lines = &test.status("a")["review"][kind]["lines"];
    let name = |line: &Value| {
        let field = |key: &str| line[key].as_str().unwrap().to_owned();
        format!("{}:{} {}", field("path"), line["line"], field("what"))
    };
    lines.as_array().into_iter().flatten().map(name).collect()
}

#[test]
fn suppressions_that_were_added_are_named() {
    let test = project();
    // What the agents in bench/cases/cheats do to silence ruff and the TypeScript compiler.
    let agent = "sed -i '1i # ruff: noqa' app/report.py
        sed -i 's|sum(rows)|sum(rows)  # noqa: E741|' app/report.py
        sed -i 's|^  return|  // @ts-ignore\\n  return|' src/shop.ts
        sed -i '1i // @ts-nocheck' src/shop.ts";
    let named = "review   4 suppressions added: app/report.py:1 noqa, app/report.py:6 noqa, src/shop.ts:1 @ts-ignore, …";
    done(&test, agent).says(named);
    assert_eq!(
        lines(&test, "suppressions"),
        [
            "app/report.py:1 noqa",
            "app/report.py:6 noqa",
            "src/shop.ts:1 @ts-ignore",
            "src/shop.ts:3 @ts-ignore"
        ]
    );
    let status = test.status("a");
    assert_eq!(status["status"], "done");
    assert_eq!(status["review"]["suppressions"]["total"], 4);
    assert_eq!(
        status["review"]["suppressions"]["lines"][1]["text"],
        "l = sum(rows) # noqa: E741"
    );
    test.ralph(&["status", "a"])
        .says("Review: 4 suppressions added: app/report.py:1 noqa");
    assert_eq!(test.events("a", "finished")[0]["review"], status["review"]);
}

#[test]
fn without_checkpoints_lines_are_compared_with_copies_of_the_start() {
    let outside = Test::new();
    let no_checkpoints = Test::git().file(".ralph/settings.toml", "checkpoints = false\n");
    for test in [outside, no_checkpoints] {
        test.write(
            "app.py",
            "import os\nimport re  # noqa\n\n\ndef f(): return 1\n",
        );
        test.write("tests/test_app.py", "def test(): pass\n");
        test.write("moved.py", "print(os)  # noqa: E1\n");
        test.write("node_modules/x.js", "a\n");
        let agent = "sed -i '1i # ruff: noqa' app.py; echo 'os._exit(0)' >> app.py
            echo 'import pytest; pytest.skip(\"later\")' >> tests/test_app.py
            mv moved.py other.py; echo '// @ts-ignore' > new.ts
            echo '// eslint-disable' > node_modules/x.js";
        done(&test, agent)
            .says("review   3 suppressions added, 1 suspicious line: app.py:7 os._exit");
        assert_eq!(
            lines(&test, "suppressions"),
            [
                "app.py:1 noqa",
                "new.ts:1 @ts-ignore",
                "tests/test_app.py:2 skip"
            ]
        );
        assert_eq!(lines(&test, "suspicious"), ["app.py:7 os._exit"]);
        assert_eq!(test.status("a")["review"]["incomplete"], Value::Null);
    }
}

#[test]
fn files_without_a_copy_of_the_start_are_named() {
    let test = Test::new();
    test.write("large.py", &"x = 1\n".repeat(200_000));
    done(&test, "echo 'y = 2  # noqa' >> large.py").says(
        "review   not every added line was read: ralph has no copy of the original of large.py",
    );
}

#[test]
fn lines_that_can_fake_a_result_are_named() {
    let test = project()
        .file("src/lib.rs", "pub fn f() {}\n")
        .file("main.go", "package main\n")
        .file("a.c", "int a;\n");
    test.sh("git add -A && git commit -qm more");
    let agent = "cat >>app/report.py <<'END'
class Any:
    def __eq__(self, other):
        return True
os._exit(0)
if 'PYTEST_CURRENT_TEST' in os.environ:
    pass
END
        echo \"if (process.env.NODE_ENV === 'test') process.exit(0)\" >>src/shop.ts
        echo '#[allow(dead_code)] fn g() { std::process::exit(0) }' >>src/lib.rs
        echo 'func init() { os.Exit(0) }' >>main.go
        echo '__attribute__((constructor)) void f(void) { _exit(0); }' >>a.c";
    done(&test, agent).says("7 suspicious lines: a.c:2 exit(0), app/report.py:8 __eq__");
    assert_eq!(
        lines(&test, "suspicious"),
        [
            "a.c:2 exit(0)",
            "app/report.py:8 __eq__",
            "app/report.py:10 os._exit",
            "app/report.py:11 looks for its tests",
            "main.go:2 os.Exit(0)",
            "src/lib.rs:2 process::exit(0)",
            "src/shop.ts:4 looks for its tests",
        ]
    );
}

#[test]
fn moved_lines_documents_generated_and_unchanged_files_are_not_named() {
    let test = project().file("README.md", "x\n");
    test.sh("git add -A && git commit -qm more");
    let agent = "mkdir lib && git mv old.py lib/new.py && sed -i '1,2d' app/report.py
        printf 'print(1)\\nimport re  # noqa\\nprint(re)\\n' >lib/moved.py && rm lib/new.py
        echo 'Write # noqa, or call os._exit(0).' >>README.md
        echo '// eslint-disable' >>bin/tool.min.js
        printf 'a\\0# noqa\\n' >data.py";
    let said = done(&test, agent);
    assert!(!said.out.contains("review"), "{}", said.out);
    assert_eq!(test.status("a")["review"], Value::Null);
}

#[test]
fn a_huge_change_is_read_in_part_and_says_so() {
    let test = project();
    let agent = "yes '# The quick brown fox jumps over the lazy dog.' | head -c 6000000 >big1.py
        cp big1.py big2.py; cp big1.py big3.py
        echo 'x = 1  # noqa' >app/first.py";
    done(&test, agent).says("not every added line was read: there are too many");
    assert_eq!(lines(&test, "suppressions"), ["app/first.py:1 noqa"]);
}

#[test]
fn a_secret_in_a_line_is_redacted() {
    let test = project();
    let agent = "echo \"key = '$SHOP_API_KEY'  # noqa\" >>app/report.py; echo '<promise>COMPLETE</promise>'";
    let args = ["run", "x", "--name", "a", "-m", "1", "--check", "true"];
    let mut command = test.ralph_command(&[&args[..], &["--", "sh", "-c", agent]].concat());
    command.env("SHOP_API_KEY", "s3cr3t-value-123");
    test.start_command(command).end().exits(0);
    let line = &test.status("a")["review"]["suppressions"]["lines"][0]["text"];
    let line = line.as_str().unwrap();
    assert!(
        line.contains("SHOP_API_KEY") && !line.contains("s3cr3t"),
        "{line}"
    );
    let receipt = test.read_loop("a", "receipt.json");
    assert!(
        receipt.contains("# noqa") && !receipt.contains("s3cr3t"),
        "{receipt}"
    );
}
