//! Matches paths against many patterns at once, without a compile step: a loop needs them for a few
//! files only.

use std::collections::HashMap;

/// Patterns as in the rows of `presets/guards.toml`, whose header describes them.
#[derive(Debug, Default)]
pub(super) struct PatternSet {
    /// Names of files, and of directories whose content matches, without a wildcard.
    names: HashMap<Vec<u8>, Vec<usize>>,
    dirs: HashMap<Vec<u8>, Vec<usize>>,
    globs: Vec<(Glob, usize)>,
    /// Indexes of the globs, by the last byte of what they match, by the first if the last is a
    /// wildcard, and of the rest.
    by_last: HashMap<u8, Vec<usize>>,
    by_first: HashMap<u8, Vec<usize>>,
    others: Vec<usize>,
    count: usize,
}

#[derive(Debug)]
struct Glob {
    text: Vec<u8>,
    target: Target,
    /// What a match must start and end with. Most candidates fail this test, which is cheap.
    prefix: Vec<u8>,
    suffix: Vec<u8>,
}

/// The part of a path that a pattern matches.
#[derive(Clone, Copy, Debug)]
enum Target {
    Name,
    Dir,
    Path,
}

const WILDCARDS: &[u8] = b"*?[]{}\\!";

impl PatternSet {
    /// Builds a set of valid patterns.
    pub(super) fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Self {
        let mut set = Self::default();
        for pattern in patterns {
            set.add(pattern.as_ref());
        }
        set
    }

    fn add(&mut self, pattern: &str) {
        let index = self.count;
        self.count += 1;
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let (body, is_dir) = match pattern.strip_suffix('/') {
            Some(body) => (body, true),
            None => (pattern, false),
        };
        let is_path = body.contains('/');
        if !is_path && !body.bytes().any(|byte| WILDCARDS.contains(&byte)) {
            let map = if is_dir {
                &mut self.dirs
            } else {
                &mut self.names
            };
            map.entry(body.into()).or_default().push(index);
            return;
        }
        let (text, target) = match (is_path, is_dir) {
            (false, false) => (body.to_owned(), Target::Name),
            (false, true) => (body.to_owned(), Target::Dir),
            (true, false) => (body.trim_start_matches('/').to_owned(), Target::Path),
            (true, true) => (format!("{}/**", body.trim_start_matches('/')), Target::Path),
        };
        let is_wild = |byte: &u8| WILDCARDS.contains(byte);
        let bytes = text.as_bytes();
        let start = bytes.iter().position(is_wild).unwrap_or(bytes.len());
        let end = bytes.iter().rposition(is_wild).map_or(0, |last| last + 1);
        let glob = Glob {
            // What precedes `**` may be absent with its slash: `a/**/b` matches `a/b`.
            prefix: bytes[..start]
                .strip_suffix(b"/")
                .unwrap_or(&bytes[..start])
                .to_vec(),
            suffix: bytes[end..]
                .strip_prefix(b"/")
                .unwrap_or(&bytes[end..])
                .to_vec(),
            text: text.into_bytes(),
            target,
        };
        let bucket = match (target, glob.suffix.last(), glob.prefix.first()) {
            (Target::Dir, ..) | (_, None, None) => &mut self.others,
            (_, Some(last), _) => self.by_last.entry(*last).or_default(),
            (_, None, Some(first)) if matches!(target, Target::Name) => {
                self.by_first.entry(*first).or_default()
            }
            _ => &mut self.others,
        };
        bucket.push(self.globs.len());
        self.globs.push((glob, index));
    }

    pub(super) fn is_match(&self, path: &[u8]) -> bool {
        let mut found = false;
        self.find(path, &mut |_| found = true);
        found
    }

    /// Passes the index of every pattern that matches, some more than once.
    pub(super) fn find(&self, path: &[u8], found: &mut dyn FnMut(usize)) {
        let mut parts = path.rsplit(|byte| *byte == b'/');
        let name = parts.next().unwrap_or_default();
        let literal =
            |map: &HashMap<Vec<u8>, Vec<usize>>, part: &[u8], found: &mut dyn FnMut(usize)| {
                map.get(part)
                    .into_iter()
                    .flatten()
                    .for_each(|index| found(*index));
            };
        literal(&self.names, name, found);
        for dir in parts.clone() {
            literal(&self.dirs, dir, found);
        }
        let last = name.last().and_then(|last| self.by_last.get(last));
        let first = name.first().and_then(|first| self.by_first.get(first));
        let candidates = last.into_iter().chain(first).chain([&self.others]);
        for (glob, index) in candidates.flatten().map(|at| &self.globs[*at]) {
            let is_match = match glob.target {
                Target::Name => glob.is_match(name),
                Target::Dir => parts.clone().any(|dir| glob.is_match(dir)),
                Target::Path => glob.is_match(path),
            };
            if is_match {
                found(*index);
            }
        }
    }
}

impl Glob {
    fn is_match(&self, text: &[u8]) -> bool {
        text.starts_with(&self.prefix)
            && text.ends_with(&self.suffix)
            && fast_glob::glob_match(&self.text, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_name_a_directory_or_a_path() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "a.txt",
                &["a.txt", "x/a.txt", "x/y/a.txt"],
                &["a.txt/x", "ba.txt", "a.txtb"],
            ),
            (
                "*.snap",
                &["x.snap", "x/y.snap", ".snap"],
                &["x.snap/y", "x.snaps"],
            ),
            (
                "tests/",
                &["tests/a", "x/tests/y/z"],
                &["tests", "xtests/a", "x/tests"],
            ),
            (
                "*.dist-info/",
                &["a.dist-info/b", "x/a.dist-info/b/c"],
                &["a.dist-info"],
            ),
            ("a/b", &["a/b"], &["x/a/b", "a/b/c"]),
            ("a/b/", &["a/b/c", "a/b/c/d"], &["a/b", "x/a/b/c"]),
            ("/top", &["top"], &["x/top"]),
            ("./a/*.c", &["a/x.c"], &["a/b/x.c", "x.c"]),
            (
                "**/src/test/**",
                &["src/test/a", "x/src/test/y/z"],
                &["src/tests/a", "src/test"],
            ),
            ("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]),
            ("a/**", &["a/b", "a/b/c"], &["b/a/b", "ab"]),
            ("{a,b}*.py", &["a1.py", "x/b.py"], &["c.py"]),
            ("x[0-9].c", &["x1.c"], &["xa.c"]),
            ("**/*.py", &["a.py", "x/a.py"], &["a.pyc"]),
        ];
        for (pattern, matching, others) in cases {
            assert!(fast_glob::validate(pattern).is_ok());
            let set = PatternSet::new([pattern]);
            for path in *matching {
                assert!(set.is_match(path.as_bytes()), "{pattern} matches {path}");
            }
            for path in *others {
                assert!(
                    !set.is_match(path.as_bytes()),
                    "{pattern} does not match {path}"
                );
            }
        }
    }

    #[test]
    fn no_pattern_or_path_makes_it_panic() {
        let mut random = fastrand::Rng::with_seed(9);
        let parts = [
            "*", "**", "/", "a", "{", "}", ",", "[", "]", "!", "\\", "?", "é", ".",
        ];
        for _ in 0..20_000 {
            let mut text = || -> String {
                (0..random.usize(0..8))
                    .map(|_| parts[random.usize(0..parts.len())])
                    .collect()
            };
            let (pattern, path) = (text(), text());
            PatternSet::new([&pattern]).is_match(path.as_bytes());
        }
    }
}
