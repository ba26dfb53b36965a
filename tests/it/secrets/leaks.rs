//! Searches for secrets below the state directory and `.ralph`, in every encoding that ralph makes.

use crate::kit::{Done, Test};
use std::fs;
use std::path::Path;

/// Fails if a file below the state directory or `.ralph`, or its name, contains one of the secrets.
pub(super) fn assert_none(test: &Test, secrets: &[&str]) {
    let forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
    for place in [test.state_dir(), test.workspace().join(".ralph")] {
        search(&place, &forms);
    }
}

/// Fails if the output of a command contains one of the secrets.
pub(super) fn assert_none_printed(done: &Done, secrets: &[&str]) {
    for form in secrets.iter().flat_map(|secret| forms(secret)) {
        let printed = format!("{}{}", done.out, done.err);
        assert!(!printed.contains(&form), "{form:?} in {printed}");
    }
}

/// Returns a secret as it is, in JSON, in JSON inside JSON, on one line, and its long lines.
pub(super) fn forms(secret: &str) -> Vec<String> {
    let folded = secret.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = secret.lines().map(str::trim);
    let lines = lines.filter(|line| line.len() >= 16 && !line.starts_with("-----"));
    let mut plain = vec![secret.to_owned(), folded];
    plain.extend(lines.map(str::to_owned));
    plain.retain(|form| form.len() >= 8);
    let json = |text: &String| {
        let text = serde_json::to_string(text).unwrap();
        text[1..text.len() - 1].to_owned()
    };
    let once: Vec<String> = plain.iter().map(json).collect();
    let twice = once.iter().map(json).collect();
    [plain, once, twice].concat()
}

fn search(place: &Path, forms: &[String]) {
    let Ok(entries) = fs::read_dir(place) else {
        return;
    };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy();
        let name = name.to_lowercase();
        let bytes = fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for form in forms {
            assert!(
                !text.contains(form),
                "{form:?} in {}: {text}",
                path.display()
            );
            let words: Vec<&str> = slug_words(form).collect();
            let slug = words.join("-").to_lowercase();
            assert!(slug.len() < 8 || !name.contains(&slug), "{form:?}: {name}");
        }
        if path.is_dir() {
            search(&path, forms);
        }
    }
}

fn slug_words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|word| !word.is_empty())
}
