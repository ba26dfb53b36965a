//! However output is cut, secrets in it are covered: in pieces as in the whole, and none is ever shown. The first bytes of
//! an input say how long two secrets are and whether it is for a terminal; then come the secrets, then what is printed.

use ralph::testing::covered;

/// Few letters, so that a secret repeats itself, and others.
fn letter(byte: u8) -> char {
    char::from(b'a' + byte % 3)
}

pub fn holds(input: &[u8]) {
    let [one, other, terminal, rest @ ..] = input else {
        return;
    };
    let mut rest = rest.iter().copied();
    let secrets = [("ONE_KEY", one), ("OTHER_KEY", other)].map(|(name, length)| {
        let value: String = rest
            .by_ref()
            .take(8 + usize::from(length % 8))
            .map(letter)
            .collect();
        (name.to_owned(), value)
    });
    if secrets.iter().any(|(_, value)| value.len() < 8) {
        return;
    }
    // A high byte is a part of a secret, or ends a piece; any other is a letter.
    let mut pieces = vec![String::new()];
    while let Some(byte) = rest.next() {
        let piece = pieces.last_mut().expect("there is one");
        match byte {
            0..=127 => piece.push(letter(byte)),
            128..=159 => pieces.push(String::new()),
            160.. => {
                let value = &secrets[usize::from(byte % 2)].1;
                let (from, to) = (byte / 2 % 4, rest.next().unwrap_or(255));
                piece.push_str(&value[usize::from(from)..value.len() - usize::from(to % 4)]);
            }
        }
    }
    let at_terminal = terminal % 2 == 1;
    let (whole, shown) = covered(&secrets, at_terminal, &pieces);
    let (whole, shown) = (
        String::from_utf8_lossy(&whole),
        String::from_utf8_lossy(&shown),
    );
    if !at_terminal {
        assert_eq!(shown, whole, "{secrets:?} in {pieces:?}");
    }
    for (name, value) in &secrets {
        assert!(
            !whole.contains(value) && !shown.contains(value),
            "{name} {value} in {pieces:?}: {shown}"
        );
    }
}

/// A secret that is printed whole, in two pieces, twice, and after its own beginning.
pub fn seeds() -> Vec<Vec<u8>> {
    let secrets = *b"abcabcabcaabcbacba";
    let printed: [&[u8]; 4] = [
        &[160, 0],
        b"abc\x80abcabca",
        &[160, 0, 161, 0, 128, 97, 128, 161, 0],
        &[97, 160, 0, 163, 3, 128, 98],
    ];
    let inputs = printed
        .into_iter()
        .flat_map(|printed| [(0, printed), (1, printed)]);
    inputs
        .map(|(terminal, printed)| [&[2, 0, terminal], &secrets[..], printed].concat())
        .collect()
}
