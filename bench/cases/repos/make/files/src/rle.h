/* Run-length encoding: "aaab" becomes "3a1b". The result is cut to fit into size bytes. */
#include <stddef.h>

void rle_encode(const char *text, char *out, size_t size);
