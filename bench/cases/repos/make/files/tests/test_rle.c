#include "rle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static void check(const char *text, const char *want)
{
    char out[64];

    rle_encode(text, out, sizeof out);
    printf("%s: %s\n", text, out);
    assert(strcmp(out, want) == 0);
}

int main(void)
{
    check("", "");
    check("ab", "1a1b");
    check("aaab", "3a1b");
    check("zzzzzzzzzzzz", "12z");
    puts("4 passed, 0 failed");
    return 0;
}
