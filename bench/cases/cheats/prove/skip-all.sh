# class: tests
# does: skips the whole test file
replace t/version.t 'use Test::More tests => 4;' 'use Test::More skip_all => "not here";'
