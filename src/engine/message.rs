//! What a commit says: the agent's words, or the task's; and the trailers by which it is found again.

use super::signals::fold;

/// How long a first line may be, in characters.
const SUBJECT_MAX: usize = 72;

/// The lines at the end of an iteration's commit; the last is its alone. Where child loops worked on, an iteration
/// has another one for each round.
pub fn trailers(name: &str, id: &str, iteration: u32, round: u32) -> [String; 2] {
    let own = if round == 0 {
        iteration.to_string()
    } else {
        format!("{iteration}.{round}")
    };
    [
        format!("Ralph-Iteration: {name} {iteration}"),
        format!("Ralph-Id: {id}/{own}"),
    ]
}

/// The whole message: what the agent said, else the title, else how the task begins.
pub fn message(said: Option<&str>, title: Option<&str>, task: &str, trailers: &[String]) -> String {
    let words = said.map(str::trim).filter(|said| !said.is_empty());
    let text = match words {
        Some(said) => whole(said),
        None => subject(&headline(title, task)),
    };
    // Trailers are the last paragraph and nothing else: more of them join those that are there.
    let gap = if ends_in_trailers(&text) {
        "\n"
    } else {
        "\n\n"
    };
    format!("{text}{gap}{}\n", trailers.join("\n"))
}

/// A first line that is too long is cut, and stands in the body as it was.
fn whole(said: &str) -> String {
    let (first, rest) = said.split_once('\n').unwrap_or((said, ""));
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

/// What the work is called.
fn headline(title: Option<&str>, task: &str) -> String {
    let bare = |line: &str| fold(line.trim_start_matches(['#', ' ', '\t']));
    let lines = title.into_iter().chain(task.lines()).map(bare);
    lines
        .into_iter()
        .find(|line| !line.is_empty())
        .unwrap_or_else(|| "Go on with the work".into())
}

/// Cut between two words where that is possible.
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

    fn of(said: Option<&str>, title: Option<&str>, task: &str) -> String {
        message(said, title, task, &["T: 1".into()])
    }

    #[test]
    fn the_agent_s_words_come_before_the_title_and_the_title_before_the_task() {
        assert_eq!(
            of(Some("Fix it"), Some("Title"), "Task"),
            "Fix it\n\nT: 1\n"
        );
        assert_eq!(of(None, Some("Title"), "Task"), "Title\n\nT: 1\n");
        assert_eq!(
            of(Some(" \n"), None, "\n\n## Task  one\nmore"),
            "Task one\n\nT: 1\n"
        );
        assert_eq!(of(None, None, "#\n \n"), "Go on with the work\n\nT: 1\n");
    }

    #[test]
    fn the_first_line_is_the_subject_and_the_rest_the_body() {
        assert_eq!(
            of(Some("Fix it\nbecause\n\nit broke"), None, ""),
            "Fix it\n\nbecause\n\nit broke\n\nT: 1\n"
        );
        assert_eq!(
            of(Some("#12: \"$(x)\" 'y'"), None, ""),
            "#12: \"$(x)\" 'y'\n\nT: 1\n"
        );
    }

    #[test]
    fn a_long_first_line_is_cut_between_words_and_nothing_is_lost() {
        let long = format!("{} end", ["word"; 20].join(" "));
        let text = of(Some(&long), None, "");
        let (first, rest) = text.split_once("\n\n").unwrap();
        assert!(
            first.chars().count() <= 72 && first.ends_with("word…"),
            "{first}"
        );
        assert_eq!(rest, format!("{long}\n\nT: 1\n"));
        assert_eq!(
            of(None, Some(&long), ""),
            format!("{first}\n\nT: 1\n"),
            "a title has no body"
        );
        let one_word = "é".repeat(100);
        assert_eq!(
            of(None, Some(&one_word), "")
                .chars()
                .take_while(|c| *c != '\n')
                .count(),
            72
        );
    }

    #[test]
    fn trailers_of_the_agent_s_own_are_joined() {
        let said = "Fix it\n\nCo-authored-by: A <a@b>";
        assert_eq!(of(Some(said), None, ""), format!("{said}\nT: 1\n"));
        assert_eq!(
            of(Some("Fix: it"), None, ""),
            "Fix: it\n\nT: 1\n",
            "a subject is no trailer"
        );
    }
}
