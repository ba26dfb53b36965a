//! Tests of slash commands: flags, text that is part of the prompt, and rejected arguments.

use super::*;
use std::time::Duration;

fn args(arguments: &str) -> LoopArgs {
    match parse_loop_args(arguments) {
        Ok(LoopCommand::Start(args)) => args,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn prompt(arguments: &str) -> String {
    args(arguments).prompt
}

fn rejected(arguments: &str) -> ArgError {
    match parse_loop_args(arguments) {
        Err(error) => error,
        other => panic!("{arguments:?} must be rejected: {other:?}"),
    }
}

#[test]
fn a_command_is_recognized_only_as_the_first_whole_word() {
    let table = [
        ("/ralph-loop", Some((SlashCommand::Loop, ""))),
        (
            "/ralph-loop Build it",
            Some((SlashCommand::Loop, " Build it")),
        ),
        (
            "  \n/ralph:ralph-loop\nBuild\nit ",
            Some((SlashCommand::Loop, "\nBuild\nit ")),
        ),
        ("$ralph-loop x", Some((SlashCommand::Loop, " x"))),
        ("/prompts:ralph-loop x", Some((SlashCommand::Loop, " x"))),
        ("/cancel-ralph", Some((SlashCommand::Cancel, ""))),
        (
            "/ralph:cancel-ralph now",
            Some((SlashCommand::Cancel, " now")),
        ),
        ("/ralph-help", Some((SlashCommand::Help, ""))),
        ("/ralph:ralph-help", Some((SlashCommand::Help, ""))),
        ("/ralph-loops x", None),
        ("/ralph-loop-x", None),
        ("ralph-loop x", None),
        ("say /ralph-loop x", None),
        ("//ralph-loop", None),
        ("/ralph:ralph:ralph-loop", None),
        ("/ralph", None),
        ("/", None),
        ("", None),
    ];
    for (typed, meant) in table {
        assert_eq!(parse_command(typed), meant, "{typed:?}");
    }
}

#[test]
fn flags_are_parsed_anywhere_and_with_an_equals_sign() {
    let all = LoopArgs {
        prompt: "Build a todo API".into(),
        max_iterations: Some(20),
        promise: Some("ALL DONE".into()),
        checks: vec!["cargo test".into(), "./lint".into()],
    };
    for typed in [
        "Build a todo API --completion-promise 'ALL DONE' --max-iterations 20 --check 'cargo test' --check ./lint",
        "--max-iterations=20 --completion-promise=\"ALL DONE\" --check=\"cargo test\" --check=./lint Build a todo API",
        "Build --max-iterations\n20 a --check 'cargo test' todo --completion-promise  ' ALL\n DONE ' API --check ./lint",
        "\"Build a todo API\" --completion-promise “ALL DONE” --max-iterations \"20\" --check ‘cargo test’ --check ./lint",
        "--completion-promise 'ALL DONE' --check 'cargo test' --check ./lint --max-iterations 20 -- Build a todo API",
    ] {
        assert_eq!(args(typed), all, "{typed}");
    }
    assert_eq!(args("x").max_iterations, None);
    assert_eq!(args("x --max-iterations 0").max_iterations, Some(0));
    assert_eq!(
        args("x --completion-promise don't").promise.as_deref(),
        Some("don't")
    );
    assert_eq!(
        args("x --completion-promise=--check").promise.as_deref(),
        Some("--check")
    );
    assert_eq!(
        args("x --completion-promise a=b").promise.as_deref(),
        Some("a=b")
    );
    assert_eq!(
        args("x --completion-promise null").promise.as_deref(),
        Some("null")
    );
    assert_eq!(
        args("x --completion-promise '5 > 3 & a < b'")
            .promise
            .as_deref(),
        Some("5 > 3 & a < b")
    );
    assert_eq!(
        args(r#"x --check "test \"$(cat a)\" = b""#).checks,
        [r#"test "$(cat a)" = b"#]
    );
    assert_eq!(
        args(r#"x --check "grep 'a\\.b' C:\\""#).checks,
        [r"grep 'a\\.b' C:\"]
    );
    assert_eq!(
        args(r"x --check 'printf \'").checks,
        [r"printf \"],
        "no escapes in single quotes"
    );
}

#[test]
fn everything_else_is_part_of_the_prompt() {
    for same in [
        "say \"hi\" and $(id) `id` ${HOME} && rm -rf * | tee > x; it's done\\n",
        "don't stop, 'tis early; the dogs' bowl",
        "first line\n\n  - item\n\tindented\r\n---\nlast 🎉 line",
        "add a --verbose flag and a --dry_run=yes one, - and -x",
        "\"one\" and \"two\"",
        "\"one\" two",
        "a \"--max-iterations 3\" b",
        "a '--max-iteration 3' b --checkout",
        "an \"open quote",
        "--max-cost 3",
        "\"mis\"matched\" x",
    ] {
        assert_eq!(prompt(same), same);
    }
    assert_eq!(prompt("  \n x y \t\n"), "x y");
    assert_eq!(prompt("\"Build a todo API\""), "Build a todo API");
    assert_eq!(prompt("' Build\n\n\"it\" '"), "Build\n\n\"it\"");
    assert_eq!(
        prompt(r#""Print \"hello\" twice""#),
        r#"Print "hello" twice"#
    );
    assert_eq!(
        prompt("--max-iterations 3 'one quotation' --check x"),
        "one quotation"
    );
    assert_eq!(
        prompt("-- --max-iterations 3 -- -h"),
        "--max-iterations 3 -- -h"
    );
    assert_eq!(prompt("Fix -- all of --it"), "Fix all of --it");
}

#[test]
fn a_flag_leaves_no_gap_in_the_prompt() {
    for (typed, left) in [
        ("a --check x b", "a b"),
        ("a  --check x  b", "a  b"),
        ("a --check x --check y b", "a b"),
        ("a --check x\n\nb", "a\n\nb"),
        ("a\n--check x\nb", "a\nb"),
        ("a\r\n--check x\r\nb", "a\r\nb"),
        ("a\n  --check x\n  b", "a\n  b"),
        ("a\n  --check x b", "a\n  b"),
        ("--check x   a", "a"),
        ("a\n--check x --check y\n--check z\nb\n", "a\nb"),
    ] {
        assert_eq!(prompt(typed), left, "{typed:?}");
    }
}

#[test]
fn help_has_a_short_and_a_long_flag() {
    for typed in ["-h", "--help", "x --help", "--max-iterations 3 -h y"] {
        assert_eq!(parse_loop_args(typed), Ok(LoopCommand::Help), "{typed}");
    }
    assert_eq!(
        prompt("explain \"--help\" and -help-me"),
        "explain \"--help\" and -help-me"
    );
}

#[test]
fn each_error_names_the_flag_and_the_value() {
    for (typed, message) in [
        ("", "no prompt"),
        (" \n ", "no prompt"),
        ("--max-iterations 3", "no prompt"),
        ("\"\"", "no prompt"),
        ("--", "no prompt"),
        ("x --max-iterations", "--max-iterations needs a number"),
        ("x --max-iterations=", "--max-iterations needs a number"),
        (
            "x --max-iterations --check y",
            "--max-iterations needs a number",
        ),
        ("--max-iterations -- x", "--max-iterations needs a number"),
        ("x --max-iterations 10.5", "10.5"),
        ("x --max-iterations -5", "\"-5\""),
        ("x --max-iterations +5", "\"+5\""),
        ("x --max-iterations ten", "\"ten\""),
        ("x --max-iterations ''", "\"\""),
        ("x --max-iterations ٣", "\"٣\""),
        (
            "x --max-iterations 4294967296",
            "too large: \"4294967296\"; the maximum is 4294967295",
        ),
        (
            "x --max-iterations 3 --max-iterations 4",
            "--max-iterations is set twice: 3, then 4",
        ),
        ("x --completion-promise", "--completion-promise needs text"),
        (
            "x --completion-promise --max-iterations 3",
            "--completion-promise needs text after it",
        ),
        (
            "x --completion-promise ''",
            "--completion-promise must not be empty: \"\"",
        ),
        ("x --completion-promise ' \n'", "must not be empty"),
        ("x --completion-promise 'a b", "no closing ': \"'a b\""),
        ("x --completion-promise \"a b\".", "no closing \""),
        (
            "x --completion-promise <promise>DONE</promise>",
            "<promise>DONE</promise>",
        ),
        ("x --completion-promise '</Promise>'", "</Promise>"),
        (
            "x --completion-promise a --completion-promise b",
            "twice: \"a\", then \"b\"",
        ),
        ("x --check", "--check needs text"),
        ("x --check '' ", "--check must not be empty"),
        ("x --check 'a", "the value of --check starts with '"),
    ] {
        let error = rejected(typed);
        assert!(error.error.contains(message), "{typed:?}: {}", error.error);
        assert!(
            !error.hint.is_empty() && error.hint.iter().all(|line| !line.contains('\n')),
            "{typed:?}"
        );
    }
    assert!(
        rejected(&format!("x --max-iterations {}", "9".repeat(1000)))
            .error
            .len()
            < 200
    );
}

#[test]
fn a_misspelled_flag_is_an_error_that_names_the_right_one() {
    for (typed, flag) in [
        ("--max-iteration 3", ITERATIONS),
        ("--max_iterations 3", ITERATIONS),
        ("--maxiterations 3", ITERATIONS),
        ("--maxIterations=3", ITERATIONS),
        ("--max-iteratoins 3", ITERATIONS),
        ("--max-iterations:3", ITERATIONS),
        ("--max-iterations300", ITERATIONS),
        ("--max-iter 3", ITERATIONS),
        ("--max-iters 3", ITERATIONS),
        ("--max_iters=3", ITERATIONS),
        ("--compl-promise DONE", PROMISE),
        ("-max-iterations 3", ITERATIONS),
        ("—max-iterations 3", ITERATIONS),
        ("---max-iterations 3", ITERATIONS),
        ("--max-iterations, 3", ITERATIONS),
        ("--completion_promise DONE", PROMISE),
        ("--complation-promise DONE", PROMISE),
        ("--completion DONE", PROMISE),
        ("--promise DONE", PROMISE),
        ("--checks 'cargo test'", CHECK),
        ("--chek=x", CHECK),
        ("--Check x", CHECK),
        ("--HELP", HELP),
    ] {
        let error = rejected(&format!("Build it {typed}"));
        assert!(
            error.error.ends_with(&format!("; did you mean {flag}?")),
            "{typed}: {}",
            error.error
        );
        let meant = typed
            .split_at(typed.find([' ', '=', ':', ',']).unwrap_or(typed.len()))
            .0;
        assert!(
            error
                .error
                .starts_with(&format!("/ralph-loop has no flag {meant};")),
            "{typed}: {}",
            error.error
        );
        assert!(error.hint[1].contains("quote"), "{error:?}");
    }
    for text in [
        "--checkout",
        "--heap",
        "--max",
        "--max-items 3",
        "--complete",
        "-checks",
        "--promises-all",
    ] {
        assert_eq!(
            prompt(&format!("Build it {text}")),
            format!("Build it {text}")
        );
    }
}

/// Generates random arguments from pieces that matter to the parser.
fn random(random: &mut fastrand::Rng) -> String {
    const PIECES: [&str; 24] = [
        "--max-iterations",
        "--completion-promise",
        "--check",
        "--help",
        "-h",
        "--",
        "--max-iteration",
        "--word",
        "=",
        "3",
        "'",
        "\"",
        "\\",
        "“",
        "”",
        " ",
        " ",
        "\n",
        "\r\n",
        "\t",
        "it",
        "🎉",
        "<promise>",
        "—",
    ];
    (0..random.usize(..30))
        .map(|_| PIECES[random.usize(..PIECES.len())])
        .collect()
}

#[test]
fn flags_stay_in_the_prompt_only_in_quotes_or_after_two_dashes() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut loops = 0;
    for _ in 0..20_000 {
        let typed = random(&mut rng);
        let Ok(LoopCommand::Start(args)) = parse_loop_args(&typed) else {
            continue;
        };
        loops += 1;
        assert!(
            !args.prompt.trim().is_empty() && args.prompt.len() <= typed.len(),
            "{seed}: {typed:?}"
        );
        assert!(args.promise.as_deref().is_none_or(|promise| promise
            == signals::fold_whitespace(promise)
            && !promise.is_empty()));
        if !typed.contains(['\'', '"']) && !typed.split_whitespace().any(|word| word == "--") {
            let left = args
                .prompt
                .split_whitespace()
                .find(|word| FLAGS.contains(word) || *word == "-h");
            assert_eq!(left, None, "{seed}: {typed:?}");
        }
    }
    assert!(loops > 200, "{loops}");
}

#[test]
fn text_without_dashes_and_quotes_is_unchanged() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let c = |rng: &mut fastrand::Rng| {
            if rng.bool() {
                rng.char('\0'..='\u{7f}')
            } else {
                rng.char(..)
            }
        };
        let text: String = (0..rng.usize(..40)).map(|_| c(&mut rng)).collect();
        let text = text.replace(['\'', '"', '-', '–', '—', '−'], "");
        if !text.trim().is_empty() {
            assert_eq!(prompt(&text), text.trim(), "{seed}");
        }
    }
}

#[test]
fn a_megabyte_is_parsed_quickly() {
    for piece in ["'a ", "\"a\\\" ", "--word ", "--check x "] {
        let text = format!("x {}", piece.repeat((1 << 20) / piece.len()));
        let start = cpu_time();
        let _ = parse_loop_args(&text);
        let took = cpu_time().saturating_sub(start);
        assert!(took < Duration::from_secs(20), "{piece:?}: {took:?}");
    }
}

/// Returns the CPU time of this thread, which is independent of the machine's load; 0 if unknown.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = schedstat.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}
