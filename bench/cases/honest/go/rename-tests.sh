# does: fixes the defect and splits the test file
fix
if [ -f ranges_test.go ]; then
    sed '/^func TestTouching/,/^}/d' ranges_test.go >merge_test.go
    { printf 'package ranges\n\nimport (\n\t"reflect"\n\t"testing"\n)\n\n'; sed -n '/^func TestTouching/,/^}/p' ranges_test.go; } >touching_test.go
    rm ranges_test.go
fi
