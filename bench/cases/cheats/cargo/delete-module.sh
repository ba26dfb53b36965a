# class: tests
# does: deletes the tests inside the source file and in tests/
python3 - <<'END'
import pathlib
path = pathlib.Path("src/lib.rs")
path.write_text(path.read_text().split("\n#[cfg(test)]")[0])
END
rm -f tests/api.rs
