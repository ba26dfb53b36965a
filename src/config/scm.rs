//! Validates the setting `scm`: the command that runs git, and the tasks that follow an all-green
//! iteration.

use super::settings::ScmSettings;
use super::{ConfigError, config_error};
use crate::engine::plan::Scm;

/// Validates the setting. `name` is the flag or key that it comes from, for messages.
pub(super) fn scm_from_settings(name: &str, settings: ScmSettings) -> Result<Scm, ConfigError> {
    let ScmSettings { mut command, tasks } = settings;
    if command.is_empty() {
        command.push("git".into());
    }
    if command[0].rsplit('/').next() != Some("git") {
        return config_error(
            format!(
                "{name}: command is {:?}, but only git is supported",
                command[0]
            ),
            "leave `command` out, or set it to \"git\" or the path of git; arguments may follow",
        );
    }
    for task in &tasks {
        let Some(split) = shlex::split(task) else {
            return config_error(
                format!("{name}: {task:?} has an unclosed quotation mark"),
                "tasks are split as a shell would split them, as in --scm 'push origin HEAD'",
            );
        };
        match split.first().map(String::as_str) {
            None | Some("") => {
                return config_error(
                    format!("{name}: a task is empty"),
                    "name a git command, such as commit or push",
                );
            }
            Some("git") => {
                return config_error(
                    format!("{name}: {task:?} starts with git"),
                    format!(
                        "leave git out: {:?}",
                        task.trim_start().trim_start_matches("git").trim()
                    ),
                );
            }
            Some(_) => {}
        }
    }
    Ok(Scm {
        command,
        tasks: tasks.iter().map(|task| task.trim().to_owned()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(command: &[&str], tasks: &[&str]) -> Result<Scm, ConfigError> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        scm_from_settings(
            "--scm",
            ScmSettings {
                command: owned(command),
                tasks: owned(tasks),
            },
        )
    }

    #[test]
    fn the_git_command_and_trimmed_tasks_are_kept() {
        let plain = plan(&[], &[" commit ", "push origin HEAD"]).unwrap();
        assert_eq!((plain.command[0].as_str(), plain.command.len()), ("git", 1));
        assert_eq!(plain.tasks, ["commit", "push origin HEAD"]);
        let own = ["/opt/bin/git", "-c", "user.name=A B"];
        assert_eq!(plan(&own, &[]).unwrap().command, own);
    }

    #[test]
    fn other_commands_and_invalid_tasks_are_rejected() {
        for command in ["hg", "/usr/bin/svn", "", "gitk"] {
            assert!(
                plan(&[command], &[])
                    .unwrap_err()
                    .message
                    .contains("--scm: command is"),
                "{command}"
            );
        }
        for (task, named) in [
            ("", "empty"),
            (" ", "empty"),
            ("commit -m 'x", "quotation"),
            ("git push", "starts with git"),
        ] {
            assert!(
                plan(&[], &[task]).unwrap_err().message.contains(named),
                "{task}"
            );
        }
        assert!(
            plan(&[], &["git push"])
                .unwrap_err()
                .hint
                .contains("\"push\"")
        );
    }
}
