//! Tests that edits of JSON texts are correct and can be undone byte for byte.

use super::*;
use serde_json::json;
use std::fmt::Write as _;

fn keys(path: &str) -> Vec<PathPart> {
    path.split('/')
        .filter(|key| !key.is_empty())
        .map(|key| PathPart::Key(key.to_owned()))
        .collect()
}

/// Sets a value, checks it and undoes the change. Returns the text with the value.
#[track_caller]
fn set(text: &str, path: &[PathPart], value: &Value) -> String {
    let mut json = JsonDocument::parse(text).unwrap();
    let undo = json.set(path, value).unwrap().expect("a change");
    assert_eq!(json.get(path).as_ref(), Some(value), "{}", json.text());
    let changed = json.text().to_owned();
    assert_eq!(
        json.set(path, value).unwrap(),
        None,
        "setting it again changes nothing"
    );
    assert!(json.undo(&undo));
    assert_eq!(json.text(), text);
    assert!(!json.undo(&undo) || undo.existing == path.len());
    changed
}

#[test]
fn a_new_member_is_formatted_like_its_neighbors() {
    for (text, path, value, changed) in [
        ("{}", "a", json!(1), "{\n  \"a\": 1\n}"),
        (
            "{ }\n",
            "a/b",
            json!(1),
            "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n",
        ),
        (
            "{\"x\":1}",
            "a",
            json!({"b": [1]}),
            "{\"x\":1,\"a\":{\"b\":[1]}}",
        ),
        (
            "{ \"x\": 1 }",
            "a",
            json!("\n"),
            "{ \"x\": 1, \"a\": \"\\n\" }",
        ),
        (
            "{\n\t\"x\" : 1\n}\n",
            "a/b",
            json!(1),
            "{\n\t\"x\" : 1,\n\t\"a\" : {\n\t\t\"b\": 1\n\t}\n}\n",
        ),
        (
            "{\r\n    \"x\": {}\r\n}",
            "x/b",
            json!(1),
            "{\r\n    \"x\": {\r\n        \"b\": 1\r\n    }\r\n}",
        ),
        (
            "{\n  \"x\": {\"y\": 1},\n\n  \"z\": 2}",
            "a",
            json!(1),
            "{\n  \"x\": {\"y\": 1},\n\n  \"z\": 2,\n  \"a\": 1}",
        ),
        (
            "{\n  \"x\": {\"y\": 1}\n}",
            "x/b",
            json!(1),
            "{\n  \"x\": {\"y\": 1, \"b\": 1}\n}",
        ),
        ("{\"a\":0,\"a\":1}", "a", json!(2), "{\"a\":0,\"a\":2}"),
        (
            "{\"a\\u0062\": \"}\\\"{\"}",
            "ab",
            json!(null),
            "{\"a\\u0062\": null}",
        ),
    ] {
        assert_eq!(set(text, &keys(path), &value), changed, "{text}");
    }
}

#[test]
fn an_array_item_is_appended_to_the_others() {
    let item = json!({ "command": "x" });
    let path = |base: &str| [keys(base), vec![PathPart::Item(item.clone())]].concat();
    for (text, base, changed) in [
        (
            "{}",
            "h/s",
            "{\n  \"h\": {\n    \"s\": [\n      {\n        \"command\": \"x\"\n      }\n    ]\n  }\n}",
        ),
        (
            "{\"s\": [1, {\"command\": \"y\"}]}",
            "s",
            "{\"s\": [1, {\"command\": \"y\"}, {\"command\":\"x\"}]}",
        ),
        ("{\"s\": []}", "s", "{\"s\": [{\"command\":\"x\"}]}"),
    ] {
        assert_eq!(set(text, &path(base), &item), changed, "{text}");
    }
}

#[test]
fn undo_keeps_members_that_were_added_later() {
    let mut json = JsonDocument::parse("{\n  \"x\": 1\n}").unwrap();
    let first = json.set(&keys("env/A"), &json!("0")).unwrap().unwrap();
    json.set(&keys("env/B"), &json!("1")).unwrap();
    json.set(&keys("y"), &json!(2)).unwrap();
    assert!(json.undo(&first));
    assert_eq!(
        json.text(),
        "{\n  \"x\": 1,\n  \"env\": {\n    \"B\": \"1\"\n  },\n  \"y\": 2\n}"
    );
}

#[test]
fn setting_a_value_in_something_else_than_a_container_fails() {
    for (text, path, error) in [
        ("{\"env\": 1}", "env/a", "env is not an object"),
        ("{\"a\": []}", "a/b/c", "a is not an object"),
    ] {
        let mut json = JsonDocument::parse(text).unwrap();
        assert_eq!(json.set(&keys(path), &json!(1)).unwrap_err(), error);
        assert_eq!(json.text(), text);
    }
    let mut json = JsonDocument::parse("{\"a\": {}}").unwrap();
    assert_eq!(
        json.set(
            &[PathPart::Key("a".into()), PathPart::Item(json!(1))],
            &json!(1)
        )
        .unwrap_err(),
        "a is not an array"
    );
    for text in [
        "",
        "[]",
        "3",
        "{\"a\": 1,}",
        "{\"a\": 1} // no",
        "{",
        "\u{feff}{}",
    ] {
        assert!(JsonDocument::parse(text).is_err(), "{text}");
    }
}

/// Generates the text of a random object in a random style.
fn random(rng: &mut fastrand::Rng, depth: u32) -> String {
    let space =
        |rng: &mut fastrand::Rng| ["", "", " ", "\n  ", "\r\n", "\t", "\n\n    "][rng.usize(..7)];
    let value = |rng: &mut fastrand::Rng| match rng.u32(..if depth > 3 { 4 } else { 6 }) {
        0 => "-1.50e3".to_owned(),
        1 => [
            "\"\\\"}]{[,:\\\\\"",
            "\"\\ud83d\\ude00\\/\\b\u{7f}\u{2028}\"",
        ][rng.usize(..2)]
        .to_owned(),
        2 => "null".to_owned(),
        3 => "\"é\\n\"".to_owned(),
        4 => {
            let items: Vec<String> = (0..rng.u32(..3)).map(|_| random(rng, depth + 1)).collect();
            format!("[{}{}]", space(rng), items.join(" ,"))
        }
        _ => random(rng, depth + 1),
    };
    let mut text = format!("{{{}", space(rng));
    for at in 0..rng.u32(..4) {
        let comma = if at == 0 { "" } else { "," };
        let key = ["a", "b", "env", "x y"][rng.usize(..4)];
        let [one, two, three, four, five] = [0; 5].map(|_| space(rng));
        let value = value(rng);
        write!(
            text,
            "{one}{comma}{two}\"{key}\"{three}:{four}{value}{five}"
        )
        .unwrap();
    }
    text + "}"
}

#[test]
fn random_texts_are_restored_to_the_byte() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    for _ in 0..5_000 {
        let text = format!("{}{}", random(&mut rng, 0), ["", "\n"][rng.usize(..2)]);
        let mut json = JsonDocument::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut undone = Vec::new();
        let mut expected: Value = from_str(&text).unwrap();
        for _ in 0..rng.u32(1..5) {
            let path: Vec<&str> = (0..rng.usize(1..4))
                .map(|_| ["a", "env", "new", "b"][rng.usize(..4)])
                .collect();
            let value = [json!("0"), json!({ "source": { "path": "/x" } }), json!([])]
                [rng.usize(..3)]
            .clone();
            let Ok(made) = json.set(&keys(&path.join("/")), &value) else {
                continue;
            };
            undone.extend(made);
            let mut at = &mut expected;
            for key in path {
                at = at.as_object_mut().unwrap().entry(key).or_insert(json!({}));
            }
            *at = value;
            assert_eq!(from_str::<Value>(json.text()).unwrap(), expected, "{text}");
        }
        for undo in undone.iter().rev() {
            assert!(json.undo(undo));
        }
        assert_eq!(json.text(), text);
    }
}
