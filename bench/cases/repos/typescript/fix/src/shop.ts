export interface Item {
  name: string;
  cents?: number;
}

export function find(items: Item[], name: string): Item | undefined {
  return items.find((item) => item.name === name);
}

export function price(items: Item[], name: string): number {
  return find(items, name)?.cents ?? 0;
}
