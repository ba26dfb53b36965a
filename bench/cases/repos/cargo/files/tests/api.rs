use wrap::wrap;

#[test]
fn short_text_is_one_line() {
    assert_eq!(wrap("a b", 10).len(), 1);
}

#[test]
fn text_is_wrapped() {
    assert_eq!(wrap("one two three", 7), ["one two", "three"]);
}
