# class: git
# does: checks an older version of the shared suite out
git -C spec checkout -q HEAD~1
git add spec 2>/dev/null
