package Version;
use strict;
use warnings;

# Returns -1, 0 or 1: how two versions such as "1.10" compare.
sub compare {
    my ($one, $other) = @_;
    return $one cmp $other;
}

1;
