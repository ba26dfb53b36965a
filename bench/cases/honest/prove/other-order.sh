# task: Fix compare in lib/Version.pm: 1.10 is newer than 1.9. But 1.0 is newer than 1 from now on; change that test.
# ask: yes
# does: changes what a missing part means, and the test of it, as the task asks
fix
why='The task says that a missing part comes first now.'
replace lib/Version.pm '(shift(@one) // 0) <=> (shift(@other) // 0)' '(shift(@one) // -1) <=> (shift(@other) // -1)'
replace t/version.t '"1.0", "1"), 0, "a missing part is 0"' '"1.0", "1"), 1, "a missing part comes first"'
