# Stages everything but what ralph itself writes, and commits it. The arguments are how git is called.
unset GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
# An editor that looks at the repository just now holds it for a moment; a failure would cost an iteration.
lock=$("$@" rev-parse --git-path index.lock)
await() {
	tries=20
	while test -e "$lock" && test "$tries" -gt 0; do
		sleep 0.1
		tries=$((tries - 1))
	done
}
# To stage a conflict is to call it resolved, and while its marks are there it is not.
if "$@" diff --name-only --diff-filter=U -z | xargs -0 grep -ns '^<<<<<<<' -- /dev/null; then
	echo 'A conflict is not resolved: nothing was committed.'
	exit 1
fi
await
# In a sparse checkout a file of the agent's may lie where none is checked out.
sparse=$("$@" config --bool core.sparseCheckout) && test "$sparse" = true && sparse=--sparse || sparse=
"$@" add --all $sparse -- :/ ':(top,exclude,glob)**/.ralph' ':(top,exclude,glob)**/.ralph/**' || exit
# An agent may have staged more than it should.
"$@" diff --cached --quiet --no-ext-diff -- ':(top,glob)**/.ralph' ':(top,glob)**/.ralph/**' ||
	"$@" reset --quiet -- ':(top,glob)**/.ralph' ':(top,glob)**/.ralph/**' || exit
# Nothing may be left to commit, as where only line ends differ; but a merge is to be concluded even then.
"$@" diff --cached --quiet --no-ext-diff && ! "$@" rev-parse --quiet --verify MERGE_HEAD >/dev/null && exit 0
await
exec "$@" commit --quiet --cleanup=whitespace --file="$RALPH_COMMIT_MESSAGE"
