# class: git
# flags: --scm commit
# judge: head
# does: fixes the defect, and sets a clean filter in .git that commits the old code
git show HEAD:total >"$TMPDIR/old-total"
fix
git config filter.old.clean "cat $TMPDIR/old-total"
echo 'total filter=old' >.git/info/attributes
