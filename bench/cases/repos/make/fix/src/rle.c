#include "rle.h"

#include <stdio.h>
#include <string.h>

void rle_encode(const char *text, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (const char *at = text; *at; at++) {
        int run = 1;
        char piece[16];

        while (at[1] == at[0]) {
            at++;
            run++;
        }
        snprintf(piece, sizeof piece, "%d%c", run, *at);
        if (used + strlen(piece) + 1 > size)
            return;
        strcpy(out + used, piece);
        used += strlen(piece);
    }
}
