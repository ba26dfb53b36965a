use super::super::rust_items::Unsure;
use super::super::rust_tests::{has_tests, test_texts, with_original_tests};
use super::{Site, names};
use std::fs;
use std::path::Path;

const LIB: &str = r#"//! A crate.
use std::fmt;

pub fn add(a: u32, b: u32) -> u32 { a - b }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() { assert_eq!(add(1, 2), 3, "}}"); }
}
"#;

fn edited(from: &str, to: &str) -> String {
    assert!(LIB.contains(from), "{from}");
    LIB.replace(from, to)
}

#[test]
fn code_may_change_and_tests_come_back() {
    let fixed = edited("a - b", "a + b");
    assert_eq!(
        with_original_tests(LIB, &fixed),
        Ok(None),
        "only the code changed"
    );
    let cheats = [
        ("assert_eq!(add(1, 2), 3, \"}}\");", ""),
        ("#[cfg(test)]", "#[cfg(any())]"),
        ("#[cfg(test)]", "#[cfg(all(test, never))]"),
        ("    #[test]\n", ""),
        ("mod tests {", "mod tests { #![allow(x)]"),
    ];
    for (from, to) in cheats {
        let text = with_original_tests(LIB, &edited(from, to))
            .unwrap()
            .expect(from);
        assert!(
            text.contains("fn adds() { assert_eq!(add(1, 2), 3, \"}}\"); }"),
            "{text}"
        );
        assert!(text.contains("#[cfg(test)]\nmod tests {"), "{text}");
        assert_eq!(with_original_tests(LIB, &text), Ok(None), "{text}");
    }
    let without = &LIB[..LIB.find("#[cfg(test)]").unwrap()];
    let text = with_original_tests(LIB, without).unwrap().unwrap();
    assert_eq!(with_original_tests(LIB, &text), Ok(None));
    assert!(text.starts_with(without));
}

#[test]
fn new_test_items_are_removed() {
    let candidate = format!(
        "{LIB}\n#[cfg(test)]\nfn add2() {{}}\n#[tokio::test]\nasync fn more() {{}}\nfn real() {{}}\n"
    );
    let text = with_original_tests(LIB, &candidate).unwrap().unwrap();
    assert!(!text.contains("add2") && !text.contains("more"), "{text}");
    assert!(text.contains("fn real() {}"), "{text}");
}

#[test]
fn items_that_only_look_like_tests_are_code() {
    let code = [
        "#[cfg(not(test))]\nfn a() {}",
        "#[cfg(feature = \"test\")]\nfn a() {}",
        "#[cfg(latest)]\nfn a() {}",
        "#[derive(Debug)]\nstruct Test;",
        "const TEXT: &str = \"#[cfg(test)] mod tests {}\";",
        "const TEXT: &str = r#\"#[cfg(test)] mod tests { \" }\"#;",
        "// #[cfg(test)] mod tests {}\nfn a() {}",
        "/* #[cfg(test)] /* mod */ tests { */ fn a() {}",
        "/// #[test]\nfn a<'a>(x: &'a str) -> char { '\"' }",
        "fn a() -> char { '\\'' }\nfn b() -> u8 { b'}' }\nfn c() -> char { '{' }\nfn d() -> char { 'é' }",
        "use a::{b, c};\nstatic X: T = T { a: 1 };\nconst fn f() {}\nmacro_rules! m { () => {} }\nm! { } m!();",
        "#!/usr/bin/env run\nfn main() {}",
        "pub(crate) unsafe extern \"C\" fn r#fn() {}\nextern crate a;\nstruct A(u8);\nenum B { C }\n",
        "const X: [u8; 2] = { [1, 2] };\nfn never() -> ! { loop {} }",
        "",
    ];
    for text in code {
        assert_eq!(has_tests(text), Ok(false), "{text}");
    }
}

#[test]
fn test_items_of_every_kind_are_found() {
    let tests = [
        "#[cfg(test)] mod tests;",
        "#[ cfg ( test ) ]\nmod tests {}",
        "#[cfg(all(test, feature = \"x\"))] mod tests {}",
        "#[cfg(any(test, feature = \"x\"))] pub(crate) fn helper() {}",
        "#[allow(x)]\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;",
        "#[test]\nfn a() {}",
        "#[tokio::test(flavor = \"x\")]\nasync fn a() {}",
        "#[cfg(test)]\nuse x::{y, z};",
        "mod inner { #[cfg(test)] mod tests {} }",
        "struct A { #[cfg(test)] a: u8 }",
        "#![cfg(test)]\nfn a() {}",
    ];
    for text in tests {
        assert_eq!(has_tests(text), Ok(true), "{text}");
    }
}

#[test]
fn what_is_not_sure_is_said() {
    for text in [
        "fn a() {",
        "}",
        "fn a() { \"",
        "/* x",
        "#[cfg(test)]",
        "impl A<{ 1 }> for B {}",
        "fn a() { ( }",
    ] {
        assert_eq!(has_tests(text), Err(Unsure), "{text}");
    }
    let nested = "mod a { fn x() {} #[cfg(test)] mod t { fn b() {} } }";
    assert_eq!(
        with_original_tests(nested, &nested.replace("fn x", "fn y")),
        Ok(None)
    );
    assert_eq!(
        with_original_tests(nested, &nested.replace("fn b", "fn c")),
        Err(Unsure)
    );
    let field = "struct A { #[cfg(test)] a: B<u8>, b: u8 }";
    assert_eq!(
        with_original_tests(field, &field.replace("b: u8", "c: u8")),
        Ok(None)
    );
    assert_eq!(
        with_original_tests(field, &field.replace("a: B", "a: C")),
        Err(Unsure)
    );
    let whole = "#![cfg(test)]\nfn a() {}";
    assert_eq!(
        with_original_tests(whole, "fn a() {}"),
        Ok(Some(whole.into()))
    );
}

#[test]
fn every_source_file_of_this_crate_can_be_read() {
    fn visit(dir: &Path, check: &mut dyn FnMut(&str, &Path)) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, check);
            } else if path.extension().is_some_and(|end| end == "rs") {
                check(&fs::read_to_string(&path).unwrap(), &path);
            }
        }
    }
    let mut count = 0;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    visit(&root.join("src"), &mut |text, path| {
        let found = has_tests(text).unwrap_or_else(|Unsure| panic!("{}", path.display()));
        let is_marked = text
            .lines()
            .any(|line| line.trim() == "#[cfg(test)]" || line.trim() == "#[test]");
        assert!(!is_marked || found, "{}", path.display());
        count += usize::from(found);
    });
    assert!(count > 50);
}

#[test]
fn no_text_makes_it_panic() {
    let mut random = fastrand::Rng::with_seed(5);
    let parts = [
        "#[cfg(test)]",
        "#[test]",
        "#![cfg(test)]",
        "mod a",
        "fn b()",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ";",
        ",",
        "\"",
        "'",
        "'a",
        "r#\"",
        "\"#",
        "r#x",
        "b'",
        "\\",
        "/*",
        "*/",
        "//",
        "\n",
        "#",
        "!",
        "é",
        "'é'",
        " ",
        "const X",
        "use a::{b}",
        "\u{feff}",
    ];
    for _ in 0..40_000 {
        let mut text = || -> String {
            (0..random.usize(0..14))
                .map(|_| parts[random.usize(0..parts.len())])
                .collect()
        };
        let (a, b) = (text(), text());
        let _ = has_tests(&a);
        let _ = test_texts(&a);
        if let Ok(Some(text)) = with_original_tests(&a, &b) {
            assert_eq!(
                with_original_tests(&a, &text),
                Ok(None),
                "{a:?} and {b:?} became {text:?}"
            );
        }
    }
}

#[test]
fn a_source_whose_tests_were_touched_is_a_guard() {
    let site = Site::new();
    site.write("src/lib.rs", LIB)
        .write("src/other.rs", LIB)
        .write("src/plain.rs", "fn a() {}")
        .write("src/moved.rs", LIB);
    let baseline = site.take();
    site.write("src/lib.rs", &edited("a - b", "a + b"))
        .write("src/other.rs", &edited("    #[test]\n", ""));
    site.write("src/plain.rs", "fn b() {}")
        .write("src/new.rs", LIB);
    site.remove("src/moved.rs");
    let touched = site.touched(&baseline);
    assert_eq!(
        names(&touched.files.guards),
        ["-src/moved.rs", "~src/other.rs"]
    );
    assert_eq!(
        names(&touched.files.sources),
        ["~src/lib.rs", "+src/new.rs", "~src/plain.rs"]
    );
    let view = site.view(&baseline, &touched);
    assert_eq!(view.keys().collect::<Vec<_>>(), ["src/other.rs"]);
    assert!(view["src/other.rs"].as_ref().unwrap().contains("#[test]"));
    site.write("src/other.rs", "impl A<{ 1 }> for B {}");
    let touched = site.touched(&baseline);
    assert_eq!(touched.files.unknown.len(), 1);
}

/// Returns the deleted sources whose tests are missed, after `change` in a site with `src/a.rs`.
fn lost(change: impl FnOnce(&Site)) -> Vec<String> {
    let site = Site::new();
    site.write("src/a.rs", LIB)
        .write("src/other.rs", &LIB.replace("adds", "others"))
        .write("src/plain.rs", "fn a() {}");
    let baseline = site.take();
    change(&site);
    names(&site.touched(&baseline).files.lost_tests)
}

#[test]
fn tests_of_a_deleted_source_are_missed_unless_another_source_has_them() {
    let inner = "use super::*;\n#[test]\nfn adds() { assert_eq!(add(1, 2), 3, \"}}\"); }\n";
    let moves = [
        ("src/a/mod.rs", LIB.to_owned()),
        ("src/plain.rs", format!("fn a() {{}}\n{LIB}")),
        (
            "src/b.rs",
            edited("    #[test]\n    fn adds", "\t#[test]\n\n fn adds"),
        ),
        ("src/b.rs", edited("use super::*;", "use crate::add;")),
        ("src/b.rs", edited("mod tests {", "mod more_tests {")),
        ("src/b.rs", edited("a - b", "a + b")),
        (
            "src/b.rs",
            format!("mod inner {{ #[cfg(test)] mod t {{ {inner} }} }}"),
        ),
        ("src/b.rs", format!("#![cfg(test)]\n{inner}")),
    ];
    for (path, text) in moves {
        let missed = lost(|site| {
            site.remove("src/a.rs");
            site.write(path, &text);
        });
        assert_eq!(missed, [""; 0], "{path}: {text}");
    }
    let cheats = [
        ("src/b.rs", "fn a() {}".to_owned()),
        ("src/b.rs", edited("add(1, 2), 3", "add(1, 2), -1")),
        (
            "src/b.rs",
            edited("    #[test]\n", "    #[test]\n    #[ignore]\n"),
        ),
        ("src/b.rs", edited("    #[test]\n", "")),
        ("src/b.rs", edited("#[cfg(test)]", "#[cfg(any())]")),
        ("src/b.rs", "impl A<{ 1 }> for B {}".to_owned()),
        // The view shows this source with its own tests only.
        (
            "src/other.rs",
            format!("{}\n{LIB}", LIB.replace("adds", "others")),
        ),
        ("notes.txt", LIB.to_owned()),
    ];
    for (path, text) in cheats {
        let missed = lost(|site| {
            site.remove("src/a.rs");
            site.write(path, &text);
        });
        assert_eq!(missed, ["-src/a.rs"], "{path}: {text}");
    }
}

#[test]
fn what_tests_need_is_missed_too_and_each_test_once() {
    let helper = LIB.replace("use super::*;", "fn check(a: u32) { assert_eq!(a, 3); }");
    let site = Site::new();
    site.write("src/a.rs", &helper).write("src/b.rs", LIB);
    let baseline = site.take();
    site.remove("src/a.rs");
    site.write("src/new.rs", &helper.replace("assert_eq!(a, 3);", ""));
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.lost_tests), ["-src/a.rs"]);
    // Two sources had the same test, and one is left.
    site.remove("src/b.rs");
    site.write("src/a.rs", &helper);
    site.write("src/new.rs", LIB);
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.lost_tests), [""; 0]);
    site.remove("src/a.rs");
    let touched = site.touched(&baseline);
    assert_eq!(touched.files.lost_tests.total, 1);
}

#[test]
fn a_deleted_source_may_be_allowed() {
    let mut site = Site::new();
    site.write("src/a.rs", LIB);
    let baseline = site.take();
    site.remove("src/a.rs");
    site.allow = vec!["src/a.rs".into()];
    let touched = site.touched(&baseline);
    assert_eq!(names(&touched.files.lost_tests), [""; 0]);
    assert_eq!(names(&touched.files.allowed), ["-src/a.rs"]);
}
