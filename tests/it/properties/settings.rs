//! Any settings files are read, or rejected with a short reason and a hint. Accepted values always
//! make settings, with and without the values that need trust.
//!
//! The first byte of an input selects the format. The rest is the text of the project's file and,
//! after a zero byte, of its local file.

use ralph::testing::SettingsReplay;
use std::fs;

const FORMATS: [&str; 3] = ["json", "toml", "yaml"];

pub fn check(input: &[u8]) {
    let [format, texts @ ..] = input else { return };
    let format = FORMATS[usize::from(*format) % FORMATS.len()];
    let mut texts = texts.splitn(2, |byte| *byte == 0);
    let (project, local) = (texts.next().unwrap_or_default(), texts.next());
    let workspace = tempfile::tempdir().expect("a directory can be created");
    let dir = workspace.path().join(".ralph");
    fs::create_dir(&dir).expect("a directory can be created");
    let write = |stem: &str, text: &[u8]| {
        fs::write(dir.join(format!("{stem}.{format}")), text).expect("a file can be written");
    };
    write("settings", project);
    if let Some(local) = local {
        write("settings.local", local);
    }
    let mut settings = match SettingsReplay::read(workspace.path()) {
        Ok(settings) => settings,
        Err((message, hint)) => {
            assert!(
                message.contains("settings."),
                "it names the file: {message}"
            );
            check_error(&message, &hint);
            return;
        }
    };
    check_plan(&settings);
    let trusted = settings.merged();
    settings.remove_guarded();
    assert_eq!(settings.guarded_keys(), [""; 0]);
    check_plan(&settings);
    if local.is_none() {
        write("settings.local", project);
        let twice = SettingsReplay::read(workspace.path()).expect("both were read before");
        assert_eq!(
            twice.merged(),
            trusted,
            "the same file twice changes nothing"
        );
    }
}

fn check_plan(settings: &SettingsReplay) {
    if let Err((message, hint)) = settings.draft_plan() {
        check_error(&message, &hint);
    }
}

fn check_error(message: &str, hint: &str) {
    assert!(!message.is_empty() && message.len() < 4000, "{message}");
    assert!(!hint.is_empty() && hint.len() < 4000, "{hint}");
}

/// Files with most kinds of values, in each format, and files with mistakes.
pub fn seeds() -> Vec<Vec<u8>> {
    let json = r#"{"$schema":"x","promptFile":"PROMPT.md","checks":["make test",{"name":"lint","command":["make","lint"],"timeout":"5m"}],"onFail":"continue","maxIterations":10,"maxCost":"2.50","maxTime":"2h","iterationTimeout":null,"backoff":"1s..300s","agent":{"name":"claude","flags":["--x"]},"agents":{"mine":{"command":["mine"],"env":{"A":"b"}}},"prices":{"m":{"input":1,"output":2.5}},"worktree":"topic","scm":{"tasks":["commit"]},"notify":"say done","approve":"all"}"#;
    let toml = "max-iterations = 10\nmaxCost = 2.5\ndone_pattern = 'a+'\nuntil-green = true\npty = false\nlogCap = \"64MiB\"\n\n[[checks]]\ncommand = \"make test\"\n\n[agents.mine]\ncommand = ['mine']\n";
    let yaml = "ralph-loop:\n  checks:\n    - make test\n  agent: &a claude\n  model: *a\n  delay: 90s\n  context: full\n  fallbackPromises: [DONE, 'COMPLETE']\n";
    let seeds = [
        (0, json.to_owned()),
        (
            0,
            format!("{json}\0{{\"agent\":\"codex\",\"maxCost\":0,\"checks\":[]}}"),
        ),
        (
            0,
            r#"{"maxIterations":-1,"maxCost":1e999,"a":{"a":[{}]},"a":1}"#.to_owned(),
        ),
        (1, toml.to_owned()),
        (1, format!("{toml}\0maxIterations = nan\nworktree = true\n")),
        (2, yaml.to_owned()),
        (2, format!("{yaml}\0? [a]\n: !!binary x\n---\n- 0x1f\n")),
    ];
    seeds
        .into_iter()
        .map(|(format, text)| [&[format], text.as_bytes()].concat())
        .collect()
}
