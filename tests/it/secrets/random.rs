//! Random secrets through real decoders and every writer: none of them is in any file afterwards.

use super::leaks;
use super::streams::{PRINTS, copilot, lines, pi, run};
use crate::kit::Test;

/// Returns a value that may be a secret, with characters that someone escapes, folds or splits at.
fn random_value(rng: &mut fastrand::Rng) -> String {
    const ODD: [&str; 14] = [
        "\"", "\\", "\n", "\t", "/", "+", "=", "<", "&", " ", "é", "日", "𝄞", "\\n",
    ];
    let odd_share = rng.u8(1..6);
    loop {
        let length = rng.usize(8..60);
        let value: String = (0..length)
            .map(|_| match rng.u8(0..10) {
                odd if odd < odd_share => ODD[rng.usize(0..ODD.len())].to_owned(),
                _ => rng.alphanumeric().to_string(),
            })
            .collect();
        let letters = value.chars().filter(char::is_ascii_alphanumeric);
        if letters.count() >= 6 && !value.starts_with('/') && !value.contains("''") {
            return value;
        }
    }
}

/// Splits a text into random pieces, most of them short.
fn random_pieces(text: &str, rng: &mut fastrand::Rng) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in text.chars() {
        pieces.last_mut().unwrap().push(c);
        if rng.u8(0..3) == 0 {
            pieces.push(String::new());
        }
    }
    pieces
}

/// Returns the arguments of runs that would store a secret as it is.
fn refused(value: &str) -> [[String; 6]; 5] {
    let name = format!("n{value}");
    [
        "--name",
        "--done-file",
        "--prompt-file",
        "--protect",
        "--worktree",
    ]
    .map(|flag| {
        let flag = format!("{flag}={name}");
        ["run", "x", &flag, "--share-workspace", "--", "true"].map(str::to_owned)
    })
}

#[test]
fn no_file_contains_a_random_secret() {
    let seed = std::env::var("RALPH_SEED").ok();
    let seed = seed.map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("RALPH_SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for round in 0..6 {
        let values: Vec<String> = (0..3).map(|_| random_value(&mut rng)).collect();
        let secrets: Vec<(&str, &str)> = ["ONE_KEY", "TWO_TOKEN", "THREE_PASSWORD"]
            .into_iter()
            .zip(values.iter().map(String::as_str))
            .collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        println!("{values:?}");
        let message = format!(
            "I use {} here.\n<note>{}</note>\n<blocked>who owns {}?</blocked>\n",
            values[0], values[1], values[2]
        );
        let pieces = random_pieces(&message, &mut rng);
        let (agent, events) = match round % 2 {
            0 => ("pi", pi(&message, &pieces)),
            _ => ("copilot", copilot(&message, &pieces)),
        };
        let stream = match round {
            // Without a single event, the same output is read as plain text.
            4 => message.clone(),
            _ => lines(&events, rng.bool()),
        };
        let test = Test::git().on_path(agent, PRINTS);
        let check = format!(
            ": '{}'; printf '%s\\n' \"$TWO_TOKEN\" \"{}\"; false",
            values[0], "$ONE_KEY"
        );
        let notify = "cat >told; printf %s \"$RALPH_RESULT\" >>told";
        let pattern = format!("{} never", regex::escape(values[1]));
        let more = [
            "--check",
            &check,
            "--notify",
            notify,
            "--done-pattern",
            &pattern,
        ];
        let done = run(&test, agent, &stream, &secrets, &more).exits(3);
        leaks::assert_none_printed(&done, &values);
        for args in refused(values[0]) {
            let mut command = test.ralph_command(&args.each_ref().map(String::as_str));
            command.envs(secrets.iter().copied());
            let done = test.start_command(command).end().exits(2);
            leaks::assert_none_printed(&done, &values);
        }
        for args in [
            &["say", "a", &message][..],
            &["bus", "post", "--loop", "a", &message],
            &["logs", "a"],
            &["status", "a", "--json"],
        ] {
            let mut command = test.ralph_command(args);
            command.envs(secrets.iter().copied());
            let done = test.start_command(command).end().exits(0);
            leaks::assert_none_printed(&done, &values);
        }
        let told = test.read("told");
        for form in values.iter().flat_map(|value| leaks::forms(value)) {
            assert!(!told.contains(&form), "{form:?} in {told}");
        }
        leaks::assert_none(&test, &values);
    }
}
