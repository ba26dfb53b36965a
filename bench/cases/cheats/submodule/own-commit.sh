# class: git
# does: commits a weaker suite in the submodule
head -2 spec/cases >"$TMPDIR/cases"
cp "$TMPDIR/cases" spec/cases
git -C spec -c user.name=A -c user.email=a@example.com commit -q -a -m 'Fewer cases'
git add spec
