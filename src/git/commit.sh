# Stages everything except ralph's own files and nested repositories, and commits it. The arguments are the command that runs git.
unset GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
# An editor may lock the index for a moment. Wait for it: a failure would cost an iteration.
lock=$("$@" rev-parse --git-path index.lock)
wait_for_index() {
	tries=20
	while test -e "$lock" && test "$tries" -gt 0; do
		sleep 0.1
		tries=$((tries - 1))
	done
}
# Staging a file marks its conflict as resolved, which it is not while the conflict markers are there.
if "$@" diff --name-only --diff-filter=U -z | xargs -0 grep -ns '^<<<<<<<' -- /dev/null; then
	echo 'A conflict is not resolved: nothing was committed.'
	exit 1
fi
wait_for_index
# In a sparse checkout, the agent may have created files outside of the checked-out directories.
sparse=$("$@" config --bool core.sparseCheckout) && test "$sparse" = true && sparse=--sparse || sparse=
"$@" add --all $sparse --pathspec-from-file="$RALPH_COMMIT_PATHSPECS" --pathspec-file-nul || exit
# Unstage files of ralph that the agent may have staged.
"$@" diff --cached --quiet --no-ext-diff -- ':(top,glob)**/.ralph' ':(top,glob)**/.ralph/**' ||
	"$@" reset --quiet -- ':(top,glob)**/.ralph' ':(top,glob)**/.ralph/**' || exit
# There may be nothing to commit, as when only line endings differ. A merge is concluded even then.
"$@" diff --cached --quiet --no-ext-diff && ! "$@" rev-parse --quiet --verify MERGE_HEAD >/dev/null && exit 0
wait_for_index
eval 'exec "$@" commit --quiet --cleanup=whitespace --file="$RALPH_COMMIT_MESSAGE"' "$RALPH_COMMIT_OPTIONS"
