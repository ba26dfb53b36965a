//! Fills in prompt templates: `{{name}}` inserts a value, and `{{#name}}…{{/name}}` is kept only if
//! the value is not empty.

/// Fills in a template. `value` returns the value of a name; `None` if the name is unknown. A tag
/// with an unknown name is left unchanged; [`find_invalid_tag`] rejects such templates earlier.
pub(crate) fn fill(template: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, tag, after)) = next_tag(rest) {
        out.push_str(before);
        rest = after;
        match tag.strip_prefix('#') {
            Some(name) => {
                let (inside, outside) = split_at_close(after, name);
                if value(name).is_none_or(|value| !value.is_empty()) {
                    out.push_str(&fill(inside, value));
                }
                rest = outside;
            }
            None => match value(tag) {
                Some(value) => out.push_str(&value),
                None => out.extend(["{{", tag, "}}"]),
            },
        }
    }
    out.push_str(rest);
    out
}

/// Returns the first tag that cannot be filled in: a name that is not in `names`, or a section that
/// is not closed. Returns `None` if the template is valid.
pub fn find_invalid_tag(template: &str, names: &[&str]) -> Option<String> {
    let mut open = Vec::new();
    let mut rest = template;
    while let Some((_, tag, after)) = next_tag(rest) {
        rest = after;
        let name = tag.trim_start_matches(['#', '/']);
        let closes = tag.starts_with('/');
        if !names.contains(&name) || (closes && open.pop() != Some(name)) {
            return Some(format!("{{{{{tag}}}}}"));
        }
        if tag.starts_with('#') {
            open.push(name);
        }
    }
    open.pop().map(|name| format!("{{{{#{name}}}}}"))
}

fn split_at_close<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    let mut rest = text;
    while let Some((before, tag, after)) = next_tag(rest) {
        if tag.strip_prefix('/') == Some(name) {
            return (&text[..text.len() - rest.len() + before.len()], after);
        }
        rest = after;
    }
    (text, "")
}

fn next_tag(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (tag, after) = rest.split_once("}}")?;
    Some((before, tag.trim(), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(name: &str) -> Option<String> {
        match name {
            "a" => Some("A".into()),
            "empty" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn values_and_sections_are_filled_in() {
        for (template, text) in [
            ("plain", "plain"),
            ("{{a}}!", "A!"),
            ("{{ a }}", "A"),
            ("[{{#a}}x{{a}}{{/a}}]", "[xA]"),
            ("[{{#empty}}x{{/empty}}]", "[]"),
            ("[{{#a}}{{#empty}}x{{/empty}}y{{/a}}]", "[y]"),
            ("{{b}} {{", "{{b}} {{"),
            ("{{#a}}open", "open"),
            ("{{ #empty }}x{{b}}{{ /empty }}y", "y"),
        ] {
            assert_eq!(fill(template, &values), text, "{template}");
        }
    }

    #[test]
    fn a_tag_inside_a_value_is_not_filled_in() {
        let value = |_: &str| Some("{{a}}".to_owned());
        assert_eq!(fill("{{x}}", &value), "{{a}}");
    }

    #[test]
    fn unknown_names_and_unclosed_sections_are_found() {
        let names = ["a", "empty"];
        for (template, found) in [
            ("{{a}} {{#empty}}{{a}}{{/empty}}", None),
            ("{{b}}", Some("{{b}}")),
            ("{{#b}}{{/b}}", Some("{{#b}}")),
            ("{{#a}}", Some("{{#a}}")),
            ("{{/a}}", Some("{{/a}}")),
            ("{{#a}}{{#empty}}{{/a}}{{/empty}}", Some("{{/a}}")),
        ] {
            assert_eq!(
                find_invalid_tag(template, &names).as_deref(),
                found,
                "{template}"
            );
        }
    }
}
