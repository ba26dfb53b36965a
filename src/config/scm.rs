//! Which words for git make sense as tasks for green work.

use super::settings::ScmWords;
use super::{Wrong, wrong};
use crate::engine::plan::Scm;

/// Makes a plan's tasks of words: how git is called, and what it is to do. `name` is where they were given.
pub fn scm(name: &str, words: ScmWords) -> Result<Scm, Wrong> {
    let ScmWords { mut command, tasks } = words;
    if command.is_empty() {
        command.push("git".into());
    }
    if command[0].rsplit('/').next() != Some("git") {
        return wrong(
            format!(
                "{name}: command is {:?}, and only git is understood",
                command[0]
            ),
            "leave it out, or give \"git\", its path, or git with words of its own",
        );
    }
    for task in &tasks {
        let Some(split) = shlex::split(task) else {
            return wrong(
                format!("{name}: {task:?} has a quotation mark without its pair"),
                "words are split as a shell would, as in --scm 'push origin HEAD'",
            );
        };
        match split.first().map(String::as_str) {
            None | Some("") => {
                return wrong(
                    format!("{name}: a task is empty"),
                    "give commit, push, or other words for git",
                );
            }
            Some("git") => {
                return wrong(
                    format!("{name}: {task:?} names git itself"),
                    format!(
                        "leave that out: {:?}",
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

    fn plan(command: &[&str], tasks: &[&str]) -> Result<Scm, Wrong> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        scm(
            "--scm",
            ScmWords {
                command: owned(command),
                tasks: owned(tasks),
            },
        )
    }

    #[test]
    fn git_is_called_as_it_was_written() {
        let plain = plan(&[], &[" commit ", "push origin HEAD"]).unwrap();
        assert_eq!((plain.command[0].as_str(), plain.command.len()), ("git", 1));
        assert_eq!(plain.tasks, ["commit", "push origin HEAD"]);
        let own = ["/opt/bin/git", "-c", "user.name=A B"];
        assert_eq!(plan(&own, &[]).unwrap().command, own);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for command in ["hg", "/usr/bin/svn", "", "gitk"] {
            assert!(
                plan(&[command], &[])
                    .unwrap_err()
                    .error
                    .contains("--scm: command is"),
                "{command}"
            );
        }
        for (task, named) in [
            ("", "empty"),
            (" ", "empty"),
            ("commit -m 'x", "quotation"),
            ("git push", "names git"),
        ] {
            assert!(
                plan(&[], &[task]).unwrap_err().error.contains(named),
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
