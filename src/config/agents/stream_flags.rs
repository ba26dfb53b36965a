//! Detects whether an agent's arguments request its event stream or choose another output format.

/// A short option that many agents accept, and its long form.
const SHORT_OPTION: (&str, &str) = ("-o", "--output-format");

/// Returns whether `args` contain all options in `stream`, which request the event stream.
pub(super) fn request_stream(args: &[String], stream: &[String]) -> bool {
    options(stream).all(|(option, value)| match value {
        None => args.iter().any(|arg| arg == option),
        Some(value) => values(args, option).any(|given| given == value),
    })
}

/// Returns whether `args` already choose an output format. If they do, ralph adds no format,
/// because some agents reject a repeated option.
pub(super) fn choose_format(args: &[String], stream: &[String]) -> bool {
    let has_value = options(stream).any(|(_, value)| value.is_some());
    options(stream).any(|(option, value)| match value {
        // Beside an option with a value, an option without a value only sets the verbosity.
        None => !has_value && args.iter().any(|arg| arg == option),
        Some(_) => values(args, option).next().is_some(),
    })
}

/// Returns the options in a preset's `stream`, each with its value; `None` for an option without a
/// value.
fn options(stream: &[String]) -> impl Iterator<Item = (&str, Option<&str>)> {
    let is_option = |arg: &String| arg.starts_with('-');
    let options = stream
        .iter()
        .enumerate()
        .filter(move |(_, arg)| is_option(arg));
    options.map(move |(index, option)| {
        let value = stream.get(index + 1).filter(|value| !is_option(value));
        (option.as_str(), value.map(String::as_str))
    })
}

/// Returns the values of an option in `args`, written as `--option value` or `--option=value`.
fn values<'a>(args: &'a [String], option: &'a str) -> impl Iterator<Item = &'a str> {
    args.iter().enumerate().filter_map(move |(index, arg)| {
        let arg = arg.as_str();
        let is_short = option == SHORT_OPTION.1 && arg == SHORT_OPTION.0;
        if arg == option || is_short {
            return Some(args.get(index + 1).map_or("", String::as_str));
        }
        arg.strip_prefix(option)?.strip_prefix('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_command_requests_the_stream_if_it_has_all_of_its_options() {
        let stream = split("--output-format stream-json --verbose");
        for (line, requests, chooses) in [
            ("-p --output-format stream-json --verbose", true, true),
            ("-p --verbose --output-format=stream-json", true, true),
            ("-p --verbose -o stream-json", true, true),
            ("-p --output-format stream-json", false, true),
            ("-p --verbose", false, false),
            ("-p --output-format json --verbose", false, true),
            ("-p --output-format", false, true),
            ("-p stream-json", false, false),
            ("", false, false),
        ] {
            assert_eq!(request_stream(&split(line), &stream), requests, "{line}");
            assert_eq!(choose_format(&split(line), &stream), chooses, "{line}");
        }
        assert!(request_stream(&split("exec --json -"), &split("--json")));
        assert!(choose_format(&split("exec --json -"), &split("--json")));
        assert!(!request_stream(&split("exec -"), &split("--json")));
    }
}
