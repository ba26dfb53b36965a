//! Reports loops in GitHub Actions: the job summary, and annotations of files.

use super::LoopReport;
use super::facts::Tone;
use super::findings::{Finding, Severity};
use super::markdown::markdown;
use crate::engine::plain_text::visible;
use std::fmt::Write as _;

/// GitHub rejects a summary of more than 1 MiB.
const SUMMARY_MAX: usize = 1_000_000;
/// GitHub shows this many annotations of each kind for a step.
const ANNOTATIONS_MAX: usize = 10;

/// Returns the job summary about these loops.
pub(crate) fn job_summary(loops: &[LoopReport], title: &str) -> String {
    let text = markdown(loops, title);
    let (start, left) = super::cut(&text, SUMMARY_MAX);
    if left == 0 {
        return text;
    }
    let end = start.rfind('\n').unwrap_or(0);
    format!(
        "{}\n\nThe rest is left out: it is too long.\n",
        &start[..end]
    )
}

/// Returns the workflow commands that annotate the run, one per line.
pub(crate) fn annotations(loops: &[LoopReport]) -> String {
    let mut out = String::new();
    let mut counts = [0; 3];
    for report in loops {
        let kind = match report.tone() {
            Tone::Good => AnnotationKind::Notice,
            Tone::Bad => AnnotationKind::Error,
            Tone::Open => AnnotationKind::Warning,
        };
        let title = format!("ralph: {}", report.name());
        let effort = super::facts::effort(report);
        let text = format!("{} ({effort})", report.verdict());
        write_one(&mut out, &mut counts, kind, None, &title, &text);
    }
    for report in loops {
        let name = report.name();
        let findings = report.findings.iter();
        let findings = findings.filter(|one| one.severity != Severity::Notice);
        for finding in findings {
            annotate(&mut out, &mut counts, name, finding);
        }
    }
    out
}

#[derive(Clone, Copy)]
enum AnnotationKind {
    Error,
    Warning,
    Notice,
}

impl AnnotationKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

fn annotate(out: &mut String, counts: &mut [usize; 3], name: &str, finding: &Finding) {
    let kind = match finding.severity {
        Severity::Alarm => AnnotationKind::Error,
        Severity::Warning => AnnotationKind::Warning,
        Severity::Notice => AnnotationKind::Notice,
    };
    if finding.lines.is_empty() {
        let text = [std::slice::from_ref(&finding.title), &finding.details[..]].concat();
        let title = format!("ralph: {name}");
        write_one(out, counts, kind, None, &title, &text.join("\n"));
    }
    for line in &finding.lines {
        let place = Some((line.path.as_str(), line.line));
        let title = format!("ralph: {}", line.what);
        write_one(out, counts, kind, place, &title, &line.text);
    }
}

fn write_one(
    out: &mut String,
    counts: &mut [usize; 3],
    kind: AnnotationKind,
    place: Option<(&str, u64)>,
    title: &str,
    text: &str,
) {
    let count = &mut counts[kind as usize];
    *count += 1;
    if *count > ANNOTATIONS_MAX {
        return;
    }
    let place = place.map(|(path, line)| format!("file={},line={line},", property(path)));
    let _ = writeln!(
        out,
        "::{} {}title={}::{}",
        kind.as_str(),
        place.unwrap_or_default(),
        property(title),
        message(super::cut(text, 2000).0)
    );
}

/// Escapes the message of a workflow command.
fn message(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D");
    visible(&text).replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_starts_a_command_of_its_own() {
        let mut out = String::new();
        let place = Some(("a,b:c\n::error::x", 3));
        let text = "100%\r\n::set-output name=x::y";
        write_one(
            &mut out,
            &mut [0; 3],
            AnnotationKind::Warning,
            place,
            "t",
            text,
        );
        assert_eq!(
            out,
            "::warning file=a%2Cb%3Ac%0A%3A%3Aerror%3A%3Ax,line=3,title=t::100%25%0D%0A\
             ::set-output name=x::y\n"
        );
    }
}
