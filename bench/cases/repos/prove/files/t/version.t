use strict;
use warnings;
use Test::More tests => 4;
use Version;

is(Version::compare("1.2", "1.2"), 0, "equal");
is(Version::compare("1.10", "1.9"), 1, "by number");
is(Version::compare("2", "10"), -1, "more digits");
is(Version::compare("1.0", "1"), 0, "a missing part is 0");
