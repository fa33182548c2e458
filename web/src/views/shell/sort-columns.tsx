// The heads of a table's columns: each sorts the table by itself.
import type { Signal } from "@preact/signals";

interface Properties<Order extends string> {
  /** Of each what it sorts by, its name, and what it does in words. */
  columns: readonly [Order, string, string][];
  order: Signal<Order>;
}

export function SortColumns<Order extends string>({ columns, order }: Properties<Order>) {
  return (
    <div class="columns">
      {columns.map(([by, name, title]) => (
        <button
          key={by}
          data-by={by}
          type="button"
          title={title}
          aria-pressed={order.value === by}
          onClick={() => (order.value = by)}
        >
          {name}
        </button>
      ))}
    </div>
  );
}
