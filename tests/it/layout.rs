//! How the output fits the terminal: its width, and the characters it can show.

use crate::kit::Test;

#[test]
fn marks_are_ascii_in_the_c_locale() {
    let test = Test::new();
    for (variable, value, is_ascii) in [
        ("LC_ALL", "C", true),
        ("LANG", "POSIX", true),
        ("TERM", "dumb", true),
        ("LC_ALL", "C.UTF-8", false),
        ("TERM", "xterm", false),
    ] {
        for args in [
            &["run", "Go.", "-m", "1", "--no-promise", "--", "true"][..],
            &["run", "Go.", "-q", "-m", "1", "--", "true"],
            &["doctor"],
            &["ls"],
            &["rnu"],
        ] {
            let mut command = test.ralph_command(args);
            command.env(variable, value);
            let done = test.start_command(command).end();
            if is_ascii {
                assert!(done.out.is_ascii() && done.err.is_ascii(), "{done:?}");
            } else if args[0] == "run" {
                assert!(!done.out.is_ascii(), "{done:?}");
            }
        }
    }
    // What scripts read is never changed.
    let mut command = test.ralph_command(&["run", "a · b …", "--dry-run", "--", "true"]);
    command.env("LC_ALL", "C");
    let done = test.start_command(command).end().exits(0);
    assert!(done.out.contains("a · b …"), "{}", done.out);
}

#[test]
fn a_quiet_run_names_the_red_checks() {
    let test = Test::new();
    let args = [
        "run", "Go.", "-q", "-m", "1", "--check", "true", "--check", "exit 3", "--", "true",
    ];
    let done = test
        .ralph(&args)
        .exits(1)
        .says("\n  check exit 3 red (exit 3, ");
    assert!(!done.out.contains("check true"), "{}", done.out);
}

mod needs_script {
    use super::*;

    #[test]
    fn the_list_of_loops_fits_the_width() {
        let test = Test::new();
        let long = "a-loop-with-quite-a-long-name-that-says-what-it-is-for";
        for name in ["b", long] {
            let args = [
                "run",
                "Go.",
                "-q",
                "-m",
                "1",
                "--no-promise",
                "--name",
                name,
            ];
            test.ralph(&[&args[..], &["--", "true"]].concat()).exits(0);
        }
        let full = test.ralph(&["ls"]).exits(0).out;
        assert!(full.contains(long) && full.contains("/shop "), "{full}");
        for columns in [40, 60, 80, 300] {
            let setting = format!("export NO_COLOR=1; stty cols {columns};");
            let done = test
                .start_on_terminal_with(&setting, &["ls"])
                .end()
                .exits(0);
            let lines: Vec<&str> = done.out.lines().collect();
            assert_eq!(lines.len(), 3, "{}", done.out);
            for line in lines {
                assert!(
                    line.trim_end().chars().count() <= columns,
                    "{columns}: {line}"
                );
            }
            assert_eq!(
                done.out.contains("REPOSITORY"),
                columns > 50,
                "{}",
                done.out
            );
            assert_eq!(done.out.contains("shop"), columns > 50, "{}", done.out);
            assert_eq!(done.out.contains(long), columns > 100, "{}", done.out);
        }
    }

    #[test]
    fn ralph_s_lines_break_between_words() {
        let test = Test::new();
        let check = "test -f one-file || test -f another-file || test -f a-third-file";
        let args = [
            "run", "Go.", "--name", "a", "-m", "1", "--check", check, "--", "true",
        ];
        let done = test
            .start_on_terminal_with("export NO_COLOR=1; stty cols 50;", &args)
            .end()
            .exits(1);
        let plain = done.out.replace('\r', "");
        assert!(
            plain.contains(
                "[ralph] a: preflight check `test -f one-file ||\n        test -f another-file || test -f\n        a-third-file`: red (exit 1, "
            ),
            "{plain}"
        );
    }
}

#[test]
fn ls_lists_names_with_numbers_in_their_natural_order() {
    let test = Test::new();
    for name in ["b-10", "b-2", "b-1", "a"] {
        test.ralph(&[
            "run",
            "x",
            "--name",
            name,
            "-m",
            "1",
            "--no-promise",
            "--",
            "true",
        ])
        .exits(0);
    }
    let shown = test.ralph(&["ls"]).exits(0).out;
    let names: Vec<_> = shown
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["a", "b-1", "b-2", "b-10"]);
    let json = test.ralph(&["ls", "--json"]).exits(0);
    let names: Vec<_> = json.json_lines()[0]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert_eq!(names, ["a", "b-1", "b-10", "b-2"]);
}

#[test]
fn child_loops_have_an_ascii_mark_in_a_c_locale() {
    let test = Test::new();
    let child = format!(
        "{} run y --name kid --share-workspace --no-promise -m 1 -- true; true",
        env!("CARGO_BIN_EXE_ralph")
    );
    test.ralph(&[
        "run",
        "x",
        "--name",
        "top",
        "-m",
        "1",
        "--no-promise",
        "--",
        "sh",
        "-c",
        &child,
    ])
    .exits(0);
    test.ralph(&["ls"]).exits(0).says("\n└ kid");
    for (name, value) in [("LC_ALL", "C"), ("TERM", "dumb")] {
        let mut command = test.ralph_command(&["ls"]);
        command.env(name, value);
        let done = test.start_command(command).end().exits(0);
        assert!(done.out.is_ascii(), "{}", done.out);
        assert!(done.out.contains("\n` kid"), "{}", done.out);
    }
}
