//! An agent's own words on its screen: lines without their frames, and without the prompt that was typed there.

use std::borrow::Cow;

/// Shorter than this, in letters and digits, the beginning of a prompt may be anybody's words.
const BEGINNING: usize = 12;

/// A line that occurs more often in the prompt than this says nothing about where it comes from.
const PLACES: usize = 64;

/// The text of a screen as the agent's words. A program may have broken the typed prompt into other lines, put a
/// frame around it or cut it off: what can be told apart is cut out.
pub fn own(text: &str, prompt: &str) -> String {
    let lines = joined(text.lines().map(bare));
    let typed = Typed::of(prompt);
    let essences: Vec<String> = lines.iter().map(|line| essence(line)).collect();
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    while at < lines.len() {
        let echoed = typed.run(&lines[at..], &essences[at..]);
        if echoed == 0 {
            kept.push_str(&lines[at]);
            kept.push('\n');
        }
        at += echoed.max(1);
    }
    kept
}

/// A promise is broken over so many rows at most.
const ROWS: usize = 4;

/// The lines, each promise in one: broken in two it would look like two lines of the prompt.
fn joined<'a>(rows: impl Iterator<Item = Cow<'a, str>>) -> Vec<Cow<'a, str>> {
    let mut lines: Vec<Cow<'a, str>> = Vec::new();
    let mut open = 0;
    for row in rows {
        match lines.last_mut() {
            Some(last) if open > 0 => {
                let last = last.to_mut();
                last.push(' ');
                last.push_str(&row);
            }
            _ => lines.push(row),
        }
        let is_open = lines.last().is_some_and(|line| is_open(line));
        open = if is_open && open < ROWS { open + 1 } else { 0 };
    }
    lines
}

/// Whether a promise begins here that does not end here.
fn is_open(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    ["promise", "response"].iter().any(|tag| {
        let begins = line.rfind(&format!("<{tag}>"));
        begins.is_some_and(|at| !line[at..].contains(&format!("</{tag}>")))
    })
}

/// The prompt as one word, whatever lines it comes in.
struct Typed {
    letters: String,
    /// One bit for each few letters that stand together somewhere: most lines of a screen are thereby known not to be
    /// the prompt's, however long that is.
    known: Vec<u64>,
}

/// So many bytes are a few letters.
const FEW: usize = 6;

/// The bit of a few letters, of so many.
fn bit_of(few: &[u8], bits: usize) -> usize {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = few.iter().fold(0xcbf2_9ce4_8422_2325, mix);
    (hash ^ (hash >> 32)) as usize % bits
}

impl Typed {
    fn of(prompt: &str) -> Self {
        let letters = essence(prompt);
        let mut known = vec![0; (letters.len() / 8 + 1).min(1 << 17)];
        for few in letters.as_bytes().windows(FEW) {
            let bit = bit_of(few, known.len() * 64);
            known[bit / 64] |= 1 << (bit % 64);
        }
        Self { letters, known }
    }

    /// Whether these letters may stand in the prompt; it is not so if this says no.
    fn may_hold(&self, letters: &str) -> bool {
        letters.as_bytes().windows(FEW).all(|few| {
            let bit = bit_of(few, self.known.len() * 64);
            self.known[bit / 64] & (1 << (bit % 64)) != 0
        })
    }

    /// How many of these lines are the prompt's. A single line may be the agent's own even if the prompt holds it
    /// too; what goes on where the line before it ended, or begins where the prompt does, is not.
    fn run(&self, lines: &[Cow<'_, str>], essences: &[String]) -> usize {
        let first = &essences[0];
        if first.is_empty() || !self.may_hold(first) {
            return 0;
        }
        let mut ends: Vec<usize> = self
            .places(first)
            .map(|at| at + first.len())
            .take(PLACES)
            .collect();
        if ends.is_empty() {
            return 0;
        }
        let begins = self.letters.starts_with(first.as_str())
            && (first.len() >= BEGINNING || first.len() == self.letters.len());
        let shown_back = lines[0].starts_with('>') && first.len() >= BEGINNING;
        let mut taken = usize::from(begins || shown_back);
        let mut cut_off = is_cut_off(&lines[0]);
        for (offset, next) in essences
            .iter()
            .enumerate()
            .skip(1)
            .filter(|(_, next)| !next.is_empty())
        {
            let follow = |end: usize| {
                let rest = &self.letters[end..];
                let near = if cut_off {
                    rest.find(next.as_str())
                } else {
                    rest.starts_with(next.as_str()).then_some(0)
                };
                near.map(|skipped| end + skipped + next.len())
            };
            ends = ends.into_iter().filter_map(follow).collect();
            if ends.is_empty() {
                break;
            }
            taken = offset + 1;
            cut_off = is_cut_off(&lines[offset]);
        }
        taken
    }

    fn places<'a>(&'a self, letters: &'a str) -> impl Iterator<Item = usize> {
        self.letters.match_indices(letters).map(|(at, _)| at)
    }
}

/// The letters and digits of a text: what no frame, no other line break and no rendering of marks changes.
fn essence(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

fn is_cut_off(line: &str) -> bool {
    line.ends_with('…') || line.ends_with("...")
}

/// A line without the frame and the bullet that a program paints around words. The sign of what a person typed
/// becomes that of a quotation, in which nothing counts.
fn bare(line: &str) -> Cow<'_, str> {
    let line = line.trim_matches(|c: char| c.is_whitespace() || is_frame(c));
    match line.strip_prefix(['❯', '›', '»']) {
        Some(typed) => Cow::Owned(format!(">{typed}")),
        None => Cow::Borrowed(
            line.trim_start_matches(|c: char| c.is_whitespace() || BULLETS.contains(c)),
        ),
    }
}

const BULLETS: &str = "●⏺•◦○◉▪■□◆◇✦✱✻✽∙·⎿";

fn is_frame(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{259f}')
}

#[cfg(test)]
mod tests {
    use super::own;
    use crate::engine::signals;

    const PROMPT: &str = "Mend the roof of the old house by the river.\n\nWhen all is mended, write:\n\
        <promise>COMPLETE</promise>\nand nothing after it.\n";

    fn promised(screen: &str) -> bool {
        signals::read(&own(screen, PROMPT), &["COMPLETE".to_owned()]).promised
    }

    #[test]
    fn the_agent_s_own_promise_counts_however_it_is_painted() {
        for screen in [
            "<promise>COMPLETE</promise>",
            "⏺ <promise>COMPLETE</promise>",
            "│ <promise>COMPLETE</promise>          │",
            "╭────╮\n│ ● All is mended now.  │\n│   <promise>COM</promise>\n│ <promise>\n│ COMPLETE</promise> │\n╰────╯",
            "Mended.\n\n  <promise>COMPLETE</promise>\n\n> \n? for shortcuts",
        ] {
            assert!(promised(screen), "{screen}");
            assert!(
                promised(&format!("{PROMPT}\nworking\n{screen}")),
                "after the prompt: {screen}"
            );
        }
    }

    #[test]
    fn the_typed_prompt_does_not_count_however_it_is_painted() {
        for screen in [
            PROMPT.to_owned(),
            format!("> {}", PROMPT.replace('\n', "\n  ")),
            PROMPT.replace('\n', " │\n│ "),
            "❯ Mend the roof of the\n  old house by the\n  river. When all is mended,\n  write:\n  <promise>COMPLETE</promise>\n  and nothing\n  after it."
                .into(),
            "When all is mended, wri…\n<promise>COMPLETE</promise>\nand nothing after it.".into(),
            "mended, write:\n<promise>COMPLETE</promise>".into(),
            "> <promise>COMPLETE</promise>".into(),
            "› <promise>COMPLETE</promise>".into(),
        ] {
            assert!(!promised(&screen), "{screen}");
            assert!(promised(&format!("{screen}\nI did it.\n<promise>COMPLETE</promise>")), "{screen}");
        }
    }

    #[test]
    fn a_prompt_of_one_line_is_cut_while_it_is_still_coming() {
        let prompt = "Work hard, then print All tasks complete when you are sure of it";
        assert_eq!(own("Work hard, then print All tasks complete", prompt), "");
        assert_eq!(own(prompt, prompt), "");
        assert_eq!(own("All tasks complete", prompt), "All tasks complete\n");
        assert_eq!(own("> hard, then print All tasks complete", prompt), "");
    }

    #[test]
    fn an_empty_prompt_hides_nothing() {
        assert_eq!(own("a\n\nb", ""), "a\n\nb\n");
        assert_eq!(own("", "x"), "");
    }
}
