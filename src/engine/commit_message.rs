//! Builds commit messages from the agent's proposal or the task's title, and adds the trailers that
//! identify the commit.

use super::signals::fold_whitespace;

/// Maximum length of a subject line, in characters.
const SUBJECT_MAX: usize = 72;

/// Returns the trailers for an iteration's commit. The last trailer is unique to the commit.
/// `round` distinguishes the commits of one iteration: each time child loops keep working after it,
/// another commit follows.
pub(crate) fn trailers(name: &str, id: &str, iteration: u32, round: u32) -> [String; 2] {
    let unique = if round == 0 {
        iteration.to_string()
    } else {
        format!("{iteration}.{round}")
    };
    [
        format!("Ralph-Iteration: {name} {iteration}"),
        format!("Ralph-Id: {id}/{unique}"),
    ]
}

/// Builds a commit message. The text is the agent's proposal, or else the title, or else the first
/// line of the task.
pub(crate) fn commit_message(
    proposal: Option<&str>,
    title: Option<&str>,
    task: &str,
    trailers: &[String],
) -> String {
    let proposal = proposal.map(str::trim).filter(|text| !text.is_empty());
    let text = match proposal {
        Some(text) => subject_and_body(text),
        None => subject(&headline(title, task)),
    };
    // Git reads trailers from the last paragraph only, so append to trailers that the agent wrote.
    let gap = if ends_in_trailers(&text) {
        "\n"
    } else {
        "\n\n"
    };
    format!("{text}{gap}{}\n", trailers.join("\n"))
}

/// Splits a proposal into subject and body. If the first line is too long for a subject, the body
/// repeats it in full.
fn subject_and_body(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (first, rest) = (first.trim(), rest.trim());
    let cut = subject(first);
    let body = match (cut == first, rest.is_empty()) {
        (true, true) => return cut,
        (true, false) => rest.to_owned(),
        (false, true) => first.to_owned(),
        (false, false) => format!("{first}\n\n{rest}"),
    };
    format!("{cut}\n\n{body}")
}

/// Returns the title, or else the first line of the task, without Markdown heading marks.
fn headline(title: Option<&str>, task: &str) -> String {
    let bare = |line: &str| fold_whitespace(line.trim_start_matches(['#', ' ', '\t']));
    let lines = title.into_iter().chain(task.lines()).map(bare);
    lines
        .into_iter()
        .find(|line| !line.is_empty())
        .unwrap_or_else(|| "Continue the work".into())
}

/// Cuts a line to [`SUBJECT_MAX`] characters, between two words where possible.
fn subject(line: &str) -> String {
    if line.chars().count() <= SUBJECT_MAX {
        return line.to_owned();
    }
    let head: String = line.chars().take(SUBJECT_MAX - 1).collect();
    let at = head
        .rfind(' ')
        .filter(|at| *at > head.len() / 2)
        .unwrap_or(head.len());
    format!("{}…", head[..at].trim_end())
}

fn ends_in_trailers(text: &str) -> bool {
    let Some((_, last)) = text.rsplit_once("\n\n") else {
        return false;
    };
    last.lines().all(|line| {
        line.split_once(": ").is_some_and(|(name, _)| {
            name.starts_with(char::is_alphabetic)
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(proposal: Option<&str>, title: Option<&str>, task: &str) -> String {
        commit_message(proposal, title, task, &["T: 1".into()])
    }

    #[test]
    fn the_proposal_comes_before_the_title_and_the_title_before_the_task() {
        assert_eq!(
            message(Some("Fix it"), Some("Title"), "Task"),
            "Fix it\n\nT: 1\n"
        );
        assert_eq!(message(None, Some("Title"), "Task"), "Title\n\nT: 1\n");
        assert_eq!(
            message(Some(" \n"), None, "\n\n## Task  one\nmore"),
            "Task one\n\nT: 1\n"
        );
        assert_eq!(message(None, None, "#\n \n"), "Continue the work\n\nT: 1\n");
    }

    #[test]
    fn the_first_line_is_the_subject_and_the_rest_is_the_body() {
        assert_eq!(
            message(Some("Fix it\nbecause\n\nit broke"), None, ""),
            "Fix it\n\nbecause\n\nit broke\n\nT: 1\n"
        );
        assert_eq!(
            message(Some("#12: \"$(x)\" 'y'"), None, ""),
            "#12: \"$(x)\" 'y'\n\nT: 1\n"
        );
    }

    #[test]
    fn a_long_first_line_is_cut_between_words_and_repeated_in_the_body() {
        let long = format!("{} end", ["word"; 20].join(" "));
        let text = message(Some(&long), None, "");
        let (first, rest) = text.split_once("\n\n").unwrap();
        assert!(
            first.chars().count() <= 72 && first.ends_with("word…"),
            "{first}"
        );
        assert_eq!(rest, format!("{long}\n\nT: 1\n"));
        assert_eq!(
            message(None, Some(&long), ""),
            format!("{first}\n\nT: 1\n"),
            "a title has no body"
        );
        let one_word = "é".repeat(100);
        assert_eq!(
            message(None, Some(&one_word), "")
                .chars()
                .take_while(|c| *c != '\n')
                .count(),
            72
        );
    }

    #[test]
    fn trailers_join_those_of_the_agent() {
        let proposal = "Fix it\n\nCo-authored-by: A <a@b>";
        assert_eq!(
            message(Some(proposal), None, ""),
            format!("{proposal}\nT: 1\n")
        );
        assert_eq!(
            message(Some("Fix: it"), None, ""),
            "Fix: it\n\nT: 1\n",
            "a subject is not a trailer"
        );
    }
}
