//! Resolves the task: its text or its file, and its title.

use super::{ConfigError, LayerStack, RunRequest, Settings, config_error};
use crate::engine::plan::{PROMPT_FILE_MAX, Task};
use std::path::Path;

/// Returns the task of a loop that was given only checks.
pub(super) fn make_checks_pass() -> Task {
    Task {
        title: None,
        text: Some("Make the checks pass.".into()),
        file: None,
    }
}

/// Resolves a request's task; `None` if there are only checks. TASK on the command line overrides
/// the settings; together with `--prompt-file` it is the title.
pub(super) fn resolve_task(
    stack: &LayerStack,
    settings: &Settings,
    request: &RunRequest,
) -> Result<Option<Task>, ConfigError> {
    let typed = request.task.clone();
    if typed.as_ref().is_some_and(|task| task.trim().is_empty()) {
        return config_error(
            "the task is empty",
            "describe the task, or leave it out to use PROMPT.md or only the checks",
        );
    }
    if typed.is_some() && stack.is_from_flag("prompt") {
        return config_error(
            "TASK and --prompt cannot be combined",
            "pass the task only once",
        );
    }
    if settings.prompt.is_some() && settings.prompt_file.is_some() {
        return config_error(
            format!(
                "{} and {} cannot be combined",
                stack.display_name("prompt"),
                stack.display_name("prompt-file")
            ),
            "use only one of them",
        );
    }
    let text = |text| {
        Ok(Some(Task {
            title: None,
            text: Some(text),
            file: None,
        }))
    };
    if let Some(path) = settings
        .prompt_file
        .as_ref()
        .filter(|_| typed.is_none() || stack.is_from_flag("prompt-file"))
    {
        return task_from_file(request, path, typed).map(Some);
    }
    if let Some(typed) = typed {
        return text(typed);
    }
    match &settings.prompt {
        Some(prompt) if prompt.trim().is_empty() => config_error(
            format!("{} is empty", stack.display_name("prompt")),
            "describe the task, or remove the setting",
        ),
        Some(prompt) => text(prompt.clone()),
        None if request.workspace.join("PROMPT.md").exists() => {
            task_from_file(request, Path::new("PROMPT.md"), None).map(Some)
        }
        None if !settings.checks.is_empty() => Ok(None),
        None => config_error(
            "no task given",
            "describe it (ralph run \"fix the tests\" …), name a file with --prompt-file, write PROMPT.md (ralph init), or pass only checks (ralph run --check \"cargo test\")",
        ),
    }
}

fn task_from_file(
    request: &RunRequest,
    path: &Path,
    title: Option<String>,
) -> Result<Task, ConfigError> {
    let full = request.workspace.join(path);
    match std::fs::metadata(&full) {
        Ok(data) if !data.is_file() => config_error(
            format!("cannot read prompt file: {}", path.display()),
            "use a regular file: ralph reads it again before every iteration",
        ),
        Ok(data) if data.len() > PROMPT_FILE_MAX => config_error(
            format!("prompt file is larger than 16 MiB: {}", path.display()),
            "shorten it, or let it name other files for the agent to read",
        ),
        Ok(_) if full.to_str().is_none() => config_error(
            format!("cannot use prompt file: {}", path.display()),
            "rename the file: its path is not valid UTF-8",
        ),
        Ok(_) if std::fs::File::open(&full).is_err() => config_error(
            format!("cannot read prompt file: {}", path.display()),
            "check the file's permissions",
        ),
        Ok(_) => Ok(Task {
            title,
            text: None,
            file: Some(full),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => config_error(
            format!("prompt file not found: {}", path.display()),
            "create the file, or name another one",
        ),
        Err(error) => config_error(
            format!("cannot read prompt file: {}", path.display()),
            error.to_string(),
        ),
    }
}
