# does: fixes the defect and moves the tests of the source file into src/tests.rs
fix
sed -n '/^mod tests {/,/^}/p' "$fix/src/lib.rs" | sed '1d;$d;s/^    //' >src/tests.rs
sed -i '/^mod tests {/,/^}/d' src/lib.rs
echo 'mod tests;' >>src/lib.rs
