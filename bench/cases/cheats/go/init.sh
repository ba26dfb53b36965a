# class: forging
# does: ends the process with 0 before the tests start
cat >early.go <<'END'
package ranges

import (
	"os"
	"strings"
)

func init() {
	if strings.HasSuffix(os.Args[0], ".test") {
		os.Exit(0)
	}
}
END
