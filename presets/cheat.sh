# The beginning of every cheat of `ralph selftest`. $SELFTEST has the lists of files, $CHECKS the checks.
each() {
    while IFS= read -r file; do
        if test -f "$file" && test ! -L "$file"; then $1 "$file"; fi
    done
}
sources() { each "$1" < "$SELFTEST/sources"; }
tests() { each "$1" < "$SELFTEST/tests"; }
programs() { cat "$SELFTEST/programs"; }
# Words of the checks that are files of the workspace: the scripts they run.
scripts() {
    set -f
    for word in $CHECKS; do
        if test -f "$word" && within . "$word"; then echo "$word"; fi
    done
    set +f
}
# Whether a path is in a directory, wherever links lead. It need not exist.
within() {
    dir=$(cd "$1" && pwd -P) || return 1
    path=$2
    while test ! -e "$path" && test ! -L "$path"; do
        case $path in */*) path=${path%/*} ;; *) path=. ;; esac
    done
    if test -d "$path"; then
        real=$(cd "$path" && pwd -P) || return 1
    else
        test ! -L "$path" || return 1
        case $path in */*) parent=${path%/*} ;; *) parent=. ;; esac
        real=$(cd "${parent:-/}" && pwd -P) || return 1
    fi
    case $real/ in "$dir"/*) return 0 ;; esac
    return 1
}
# Writes a file from the standard input. A link is replaced, so that nothing is written where it leads.
put() {
    if within . "$1"; then :; elif test -L "$1" && within . "$(dirname "$1")"; then rm -f "$1"; else return 0; fi
    cat > "$1"
}
# Installs a git hook, in a directory of its own: the usual one may be a link to hooks that repositories share.
hook() {
    hooks=$(cd "$(git rev-parse --git-dir)" && pwd)/ralph-selftest-hooks
    test ! -L "${hooks%/*}/config" || return 0
    mkdir "$hooks" 2> /dev/null
    git config core.hooksPath "$hooks"
    printf '#!/bin/sh\nSELFTEST=%s\n%s\n' "'$SELFTEST'" "$2" > "$hooks/$1"
    chmod +x "$hooks/$1"
}
has() {
    case $1 in
        scripts) test -n "$(scripts)" ;;
        *) test -s "$SELFTEST/$1" ;;
    esac
}
# Whether there are sources or tests with one of these endings.
has_files() {
    list=$1
    shift
    for end; do
        grep -q "\\.$end\$" "$SELFTEST/$list" && return 0
    done
    return 1
}
checks() {
    for word; do
        case $CHECKS in *"$word"*) return 0 ;; esac
    done
    return 1
}
empty() { : > "$1"; }
# Makes code compute something else, but not run forever: loops and assignments stay.
exchange() {
    sed -i -E '/while|for|until|loop/!{ /=>/s/ \+ / - /g; /(^|[^=!<>])=([^=>]|$)/!s/ \+ / - /g; /return|=>/s/ == / != /g; }' "$1"
}
garble() { echo ')]} ralph selftest: this is not code {[(' > "$1"; }
# Replaces a script or a test by one that passes.
pass() {
    case $1 in
        *.py) printf 'import unittest\nclass T(unittest.TestCase):\n    def test_ok(self):\n        pass\nif __name__ == "__main__":\n    unittest.main()\n' > "$1" ;;
        *.js|*.mjs|*.cjs|*.ts|*.mts|*.tsx|*.jsx) echo 'try { test("ok", () => {}); } catch {}' > "$1" ;;
        *.rs) printf '#[test]\nfn ok() {}\n' > "$1" ;;
        *.c|*.cc|*.cpp|*.cxx) echo 'int main(void) { return 0; }' > "$1" ;;
        *.go) { grep -m1 '^package ' "$1"; printf 'import "testing"\nfunc TestOk(t *testing.T) {}\n'; } > "$1.new"; mv "$1.new" "$1" ;;
        *) printf '#!/bin/sh\nexit 0\n' > "$1" ;;
    esac
}
