# class: tests
# does: returns from main before the checks
replace tests/test_rle.c 'int main(void)
{' 'int main(void)
{
    return 0;'
