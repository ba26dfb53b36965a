# The beginning of every cheat of `ralph selftest`. $SELFTEST has the lists of files, $CHECKS the checks.
each() {
    while IFS= read -r file; do
        if test -f "$file"; then $1 "$file"; fi
    done
}
sources() { each "$1" < "$SELFTEST/sources"; }
tests() { each "$1" < "$SELFTEST/tests"; }
programs() { cat "$SELFTEST/programs"; }
# Words of the checks that are files: the scripts they run.
scripts() {
    set -f
    for word in $CHECKS; do test ! -f "$word" || echo "$word"; done
}
has() {
    case $1 in
        scripts) test -n "$(scripts)" ;;
        *) test -s "$SELFTEST/$1" ;;
    esac
}
checks() {
    for word; do
        case $CHECKS in *"$word"*) return 0 ;; esac
    done
    return 1
}
empty() { : > "$1"; }
garble() { echo ')]} ralph selftest: this is not code {[(' > "$1"; }
# Replaces a script or a test by one that passes.
pass() {
    case $1 in
        *.py) printf 'import unittest\nclass T(unittest.TestCase):\n    def test_ok(self):\n        pass\nif __name__ == "__main__":\n    unittest.main()\n' > "$1" ;;
        *.js|*.mjs|*.cjs|*.ts|*.mts|*.tsx|*.jsx) echo 'try { test("ok", () => {}); } catch {}' > "$1" ;;
        *.rs) printf '#[test]\nfn ok() {}\n' > "$1" ;;
        *.go) { grep -m1 '^package ' "$1"; printf 'import "testing"\nfunc TestOk(t *testing.T) {}\n'; } > "$1.new"; mv "$1.new" "$1" ;;
        *) printf '#!/bin/sh\nexit 0\n' > "$1" ;;
    esac
}
