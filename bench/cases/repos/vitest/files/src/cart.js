/** Returns the total of the items in cents, with the discount (in per cent) taken off and rounded half up. */
export function total(items, discount = 0) {
  return items.reduce((sum, item) => sum + item.cents, 0);
}

export function receipt(items, discount = 0) {
  return [...items.map((item) => `${item.name} x${item.count}`), `total ${total(items, discount)}`];
}
