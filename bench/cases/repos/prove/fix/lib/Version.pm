package Version;
use strict;
use warnings;

# Returns -1, 0 or 1: how two versions such as "1.10" compare.
sub compare {
    my @one   = split /\./, shift;
    my @other = split /\./, shift;
    while (@one || @other) {
        my $order = (shift(@one) // 0) <=> (shift(@other) // 0);
        return $order if $order;
    }
    return 0;
}

1;
