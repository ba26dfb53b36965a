# Stages everything but what ralph itself writes, and commits it. The arguments are how git is called.
unset GIT_LITERAL_PATHSPECS GIT_GLOB_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_ICASE_PATHSPECS
"$@" add --all -- :/ ':(top,exclude,glob)**/.ralph' ':(top,exclude,glob)**/.ralph/**' || exit
# An agent may have staged more than it should.
"$@" diff --cached --quiet --no-ext-diff -- ':(top,glob)**/.ralph' ':(top,glob)**/.ralph/**' ||
	"$@" reset --quiet -- ':(top,glob)**/.ralph' ':(top,glob)**/.ralph/**' || exit
# Nothing may be left to commit, as where only line ends differ; but a merge is to be concluded even then.
"$@" diff --cached --quiet --no-ext-diff && ! "$@" rev-parse --quiet --verify MERGE_HEAD >/dev/null && exit 0
exec "$@" commit --quiet --cleanup=whitespace --file="$RALPH_COMMIT_MESSAGE"
