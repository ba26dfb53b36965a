/** Returns the total of the items in cents, with the discount (in per cent) taken off and rounded half up. */
export function total(items, discount = 0) {
  const sum = items.reduce((all, item) => all + item.cents * item.count, 0);
  return Math.round((sum * (100 - discount)) / 100);
}

export function receipt(items, discount = 0) {
  return [...items.map((item) => `${item.name} x${item.count}`), `total ${total(items, discount)}`];
}
