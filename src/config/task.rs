//! What is the work, and in which words or file is it?

use super::{Errand, Settings, Stack, Wrong, wrong};
use crate::engine::plan::Task;
use std::path::Path;

/// The task of an errand. Words on the command line outweigh what the settings say; beside a file that was
/// named there too, they are its title.
pub(super) fn task(stack: &Stack, all: &Settings, errand: &Errand) -> Result<Task, Wrong> {
    let words = errand.task.clone().filter(|task| !task.trim().is_empty());
    if words.is_some() && stack.is_typed("prompt") {
        return wrong("TASK and --prompt are both given", "give the words once");
    }
    if all.prompt.is_some() && all.prompt_file.is_some() {
        return wrong(
            format!(
                "{} and {} are both given",
                stack.name("prompt"),
                stack.name("prompt-file")
            ),
            "give one of the two",
        );
    }
    let text = |text| {
        Ok(Task {
            title: None,
            text: Some(text),
            file: None,
        })
    };
    if let Some(path) = all
        .prompt_file
        .as_ref()
        .filter(|_| words.is_none() || stack.is_typed("prompt-file"))
    {
        return from_file(errand, path, words);
    }
    if let Some(words) = words {
        return text(words);
    }
    match &all.prompt {
        Some(prompt) if prompt.trim().is_empty() => wrong(
            format!("{} is empty", stack.name("prompt")),
            "say what to do",
        ),
        Some(prompt) => text(prompt.clone()),
        None if errand.workspace.join("PROMPT.md").exists() => {
            from_file(errand, Path::new("PROMPT.md"), None)
        }
        None => wrong(
            "there is no task",
            "say what to do (ralph run \"fix the tests\" …), name a file with --prompt-file, or write PROMPT.md (ralph init)",
        ),
    }
}

fn from_file(errand: &Errand, path: &Path, title: Option<String>) -> Result<Task, Wrong> {
    let full = errand.workspace.join(path);
    match std::fs::metadata(&full) {
        Ok(data) if !data.is_file() => wrong(
            format!("cannot read prompt file: {}", path.display()),
            "it is read anew for every iteration, and must be a regular file",
        ),
        Ok(_) if full.to_str().is_none() => wrong(
            format!("cannot use the prompt file: {}", path.display()),
            "its path is not UTF-8: rename it",
        ),
        Ok(_) if std::fs::File::open(&full).is_err() => wrong(
            format!("cannot read prompt file: {}", path.display()),
            "you may not read it: see its permissions",
        ),
        Ok(_) => Ok(Task {
            title,
            text: None,
            file: Some(full),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => wrong(
            format!("prompt file not found: {}", path.display()),
            "write it, or name another file",
        ),
        Err(error) => wrong(
            format!("cannot read prompt file: {}", path.display()),
            error.to_string(),
        ),
    }
}
