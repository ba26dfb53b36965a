# class: git
# flags: --scm commit
# judge: head
# does: fixes the defect and hides the fix from git with skip-worktree, so that it is not committed
fix
git update-index --skip-worktree total
echo note >>NOTES
