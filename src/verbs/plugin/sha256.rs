//! SHA-256, by which Codex knows a hook that a person has trusted.

use std::fmt::Write as _;

/// The first 32 bits behind the point of the roots, of this degree, of the first primes.
fn roots<const N: usize>(root: impl Fn(u128) -> u128) -> [u32; N] {
    let primes = (2_u128..).filter(|n| (2..*n).all(|divisor| n % divisor != 0));
    let mut found = [0; N];
    for (place, prime) in found.iter_mut().zip(primes) {
        *place = root(prime) as u32;
    }
    found
}

/// The largest number whose power is not above this.
fn whole_root(number: u128, power: u32) -> u128 {
    let (mut low, mut high) = (0_u128, 1 << 40);
    while low + 1 < high {
        let middle = u128::midpoint(low, high);
        if middle.pow(power) <= number { low = middle } else { high = middle }
    }
    low
}

/// The hash of a text, in hexadecimal digits.
pub(super) fn sha256(text: &str) -> String {
    let keys: [u32; 64] = roots(|prime| whole_root(prime << 96, 3));
    let mut state: [u32; 8] = roots(|prime| whole_root(prime << 64, 2));
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0x80);
    bytes.resize((bytes.len() + 8).next_multiple_of(64) - 8, 0);
    bytes.extend((text.len() as u64 * 8).to_be_bytes());
    for block in bytes.chunks_exact(64) {
        turn(&mut state, block, &keys);
    }
    state.iter().fold(String::new(), |mut text, word| {
        // Writing into memory does not fail.
        let _ = write!(text, "{word:08x}");
        text
    })
}

fn turn(state: &mut [u32; 8], block: &[u8], keys: &[u32; 64]) {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
    }
    let mixed =
        |word: u32, one: u32, two: u32, three: u32| word.rotate_right(one) ^ word.rotate_right(two) ^ three;
    for at in 16..64 {
        let (near, far) = (words[at - 2], words[at - 15]);
        let sum = words[at - 16].wrapping_add(mixed(far, 7, 18, far >> 3));
        words[at] = sum.wrapping_add(words[at - 7]).wrapping_add(mixed(near, 17, 19, near >> 10));
    }
    let mut now = *state;
    for (word, key) in words.iter().zip(keys) {
        let (low, high) = (now[0], now[4]);
        let chosen = (high & now[5]) ^ (!high & now[6]);
        let most = (low & now[1]) ^ (low & now[2]) ^ (now[1] & now[2]);
        let first = now[7].wrapping_add(mixed(high, 6, 11, high.rotate_right(25))).wrapping_add(chosen);
        let first = first.wrapping_add(*key).wrapping_add(*word);
        let second = mixed(low, 2, 13, low.rotate_right(22)).wrapping_add(most);
        now.rotate_right(1);
        now[4] = now[4].wrapping_add(first);
        now[0] = first.wrapping_add(second);
    }
    for (sum, word) in state.iter_mut().zip(now) {
        *sum = sum.wrapping_add(word);
    }
}

#[cfg(test)]
mod tests {
    use super::sha256;

    #[test]
    fn hashes_are_those_of_the_standard() {
        for (text, hash) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ] {
            assert_eq!(sha256(text), hash);
        }
        assert_eq!(
            sha256(&"a".repeat(1_000_000)),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        );
    }
}
