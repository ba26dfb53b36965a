//! Which typed words are flags, which are text, and which are refused.

use super::*;
use std::time::Duration;

fn errand(arguments: &str) -> Errand {
    match parse(arguments) {
        Ok(Asked::Loop(errand)) => errand,
        other => panic!("{arguments:?}: {other:?}"),
    }
}

fn prompt(arguments: &str) -> String {
    errand(arguments).prompt
}

fn refused(arguments: &str) -> Wrong {
    match parse(arguments) {
        Err(wrong) => wrong,
        other => panic!("{arguments:?} must be refused: {other:?}"),
    }
}

#[test]
fn a_command_is_the_first_whole_word() {
    let table = [
        ("/ralph-loop", Some((Command::Loop, ""))),
        ("/ralph-loop Build it", Some((Command::Loop, " Build it"))),
        (
            "  \n/ralph:ralph-loop\nBuild\nit ",
            Some((Command::Loop, "\nBuild\nit ")),
        ),
        ("$ralph-loop x", Some((Command::Loop, " x"))),
        ("/prompts:ralph-loop x", Some((Command::Loop, " x"))),
        ("/cancel-ralph", Some((Command::Cancel, ""))),
        ("/ralph:cancel-ralph now", Some((Command::Cancel, " now"))),
        ("/ralph-help", Some((Command::Help, ""))),
        ("/ralph:ralph-help", Some((Command::Help, ""))),
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
        assert_eq!(command(typed), meant, "{typed:?}");
    }
}

#[test]
fn flags_may_stand_anywhere_and_be_joined() {
    let all = Errand {
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
        assert_eq!(errand(typed), all, "{typed}");
    }
    assert_eq!(errand("x").max_iterations, None);
    assert_eq!(errand("x --max-iterations 0").max_iterations, Some(0));
    assert_eq!(
        errand("x --completion-promise don't").promise.as_deref(),
        Some("don't")
    );
    assert_eq!(
        errand("x --completion-promise=--check").promise.as_deref(),
        Some("--check")
    );
    assert_eq!(
        errand("x --completion-promise a=b").promise.as_deref(),
        Some("a=b")
    );
    assert_eq!(
        errand("x --completion-promise null").promise.as_deref(),
        Some("null")
    );
    assert_eq!(
        errand("x --completion-promise '5 > 3 & a < b'")
            .promise
            .as_deref(),
        Some("5 > 3 & a < b")
    );
    assert_eq!(
        errand(r#"x --check "test \"$(cat a)\" = b""#).checks,
        [r#"test "$(cat a)" = b"#]
    );
    assert_eq!(
        errand(r#"x --check "grep 'a\\.b' C:\\""#).checks,
        [r"grep 'a\\.b' C:\"]
    );
    assert_eq!(
        errand(r"x --check 'printf \'").checks,
        [r"printf \"],
        "no escapes in single quotes"
    );
}

#[test]
fn everything_else_is_text() {
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
fn a_flag_leaves_no_gap() {
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
fn help_is_asked_for_by_either_name() {
    for typed in ["-h", "--help", "x --help", "--max-iterations 3 -h y"] {
        assert_eq!(parse(typed), Ok(Asked::Help), "{typed}");
    }
    assert_eq!(
        prompt("explain \"--help\" and -help-me"),
        "explain \"--help\" and -help-me"
    );
}

#[test]
fn each_refusal_names_the_flag_and_what_was_given() {
    for (typed, error) in [
        ("", "there is no prompt"),
        (" \n ", "there is no prompt"),
        ("--max-iterations 3", "there is no prompt"),
        ("\"\"", "there is no prompt"),
        ("--", "there is no prompt"),
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
            "too big: \"4294967296\"; the most is 4294967295",
        ),
        (
            "x --max-iterations 3 --max-iterations 4",
            "--max-iterations is given twice: 3, then 4",
        ),
        ("x --completion-promise", "--completion-promise needs words"),
        (
            "x --completion-promise --max-iterations 3",
            "--completion-promise needs words, and there are none",
        ),
        (
            "x --completion-promise ''",
            "--completion-promise needs words, and these are empty: \"\"",
        ),
        ("x --completion-promise ' \n'", "these are empty"),
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
        ("x --check", "--check needs words"),
        ("x --check '' ", "--check needs words"),
        ("x --check 'a", "--check has a value that begins with '"),
    ] {
        let wrong = refused(typed);
        assert!(wrong.error.contains(error), "{typed:?}: {}", wrong.error);
        assert!(
            !wrong.hint.is_empty() && wrong.hint.iter().all(|line| !line.contains('\n')),
            "{typed:?}"
        );
    }
    assert!(
        refused(&format!("x --max-iterations {}", "9".repeat(1000)))
            .error
            .len()
            < 200
    );
}

#[test]
fn a_near_miss_names_the_flag_that_was_meant() {
    for (typed, flag) in [
        ("--max-iteration 3", ITERATIONS),
        ("--max_iterations 3", ITERATIONS),
        ("--maxiterations 3", ITERATIONS),
        ("--maxIterations=3", ITERATIONS),
        ("--max-iteratoins 3", ITERATIONS),
        ("--max-iterations:3", ITERATIONS),
        ("--max-iterations300", ITERATIONS),
        ("--max-iter 3", ITERATIONS),
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
        let wrong = refused(&format!("Build it {typed}"));
        assert!(
            wrong.error.ends_with(&format!("; {flag} is")),
            "{typed}: {}",
            wrong.error
        );
        let meant = typed
            .split_at(typed.find([' ', '=', ':', ',']).unwrap_or(typed.len()))
            .0;
        assert!(
            wrong.error.starts_with(&format!("{meant} is no flag")),
            "{typed}: {}",
            wrong.error
        );
        assert!(wrong.hint[1].contains("quotes"), "{wrong:?}");
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

/// Words from a seed, out of pieces that matter to the parser.
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
fn no_flag_stays_in_the_prompt_but_in_quotes_or_after_two_dashes() {
    let seed = fastrand::u64(..);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut loops = 0;
    for _ in 0..20_000 {
        let typed = random(&mut rng);
        let Ok(Asked::Loop(errand)) = parse(&typed) else {
            continue;
        };
        loops += 1;
        assert!(
            !errand.prompt.trim().is_empty() && errand.prompt.len() <= typed.len(),
            "{seed}: {typed:?}"
        );
        assert!(
            errand
                .promise
                .as_deref()
                .is_none_or(|words| words == signals::fold(words) && !words.is_empty())
        );
        if !typed.contains(['\'', '"']) && !typed.split_whitespace().any(|word| word == "--") {
            let left = errand
                .prompt
                .split_whitespace()
                .find(|word| FLAGS.contains(word) || *word == "-h");
            assert_eq!(left, None, "{seed}: {typed:?}");
        }
    }
    assert!(loops > 200, "{loops}");
}

#[test]
fn text_without_dashes_and_quotes_comes_back_as_it_was() {
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
fn a_megabyte_is_read_at_once() {
    for piece in ["'a ", "\"a\\\" ", "--word ", "--check x "] {
        let text = format!("x {}", piece.repeat((1 << 20) / piece.len()));
        let begun = worked();
        let _ = parse(&text);
        let took = worked().saturating_sub(begun);
        assert!(took < Duration::from_secs(20), "{piece:?}: {took:?}");
    }
}

/// How long this thread has had a core: what a busy machine adds is no fault of the parser. Nothing where that is not
/// told.
fn worked() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = told.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(ns.unwrap_or(0))
}
