# does: fixes the defect on a branch of its own, with its own name in .git/config
git config user.name Agent
git checkout -q -B fix-slugs
fix
git commit -q -a -m 'Fix slugs' || true
