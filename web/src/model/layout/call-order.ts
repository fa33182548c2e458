// The order in which functions are put down: of two whose calls lead one way only, the caller comes first; else the one
// that was discovered first.
import { type Adjacency, makeAdjacency } from "./adjacency.ts";

export interface CallOrder {
  /** Functions, callers first. */
  order: Uint32Array;
  /** Of each function the group of those that call each other, however indirectly: the least index in it. */
  component: Uint32Array;
}

/** Order `n` functions, indices of which are the order of discovery, by the links between them. */
export function orderByCalls(n: number, linkSource: ArrayLike<number>, linkTarget: ArrayLike<number>): CallOrder {
  const links = makeAdjacency(n, linkSource, linkTarget);
  const component = findComponents(n, links);
  return { order: sortComponents(n, links, component), component };
}

/** Tarjan's strongly connected components, without recursion: the graph is as deep as the program's calls. */
function findComponents(n: number, { start, to }: Adjacency): Uint32Array {
  const component = new Uint32Array(n);
  const number = new Uint32Array(n); // in the order of visits, from 1; 0: not visited
  const low = new Uint32Array(n);
  const isOpen = new Uint8Array(n);
  const open = new Uint32Array(n);
  const path = new Uint32Array(n);
  const next = start.slice(0, n);
  let nOpen = 0;
  let visits = 0;
  for (let root = 0; root < n; root++) {
    if (number[root] > 0) {
      continue;
    }
    let length = 0;
    const enter = (node: number) => {
      number[node] = low[node] = ++visits;
      isOpen[node] = 1;
      open[nOpen++] = node;
      path[length++] = node;
    };
    enter(root);
    while (length > 0) {
      const node = path[length - 1];
      if (next[node] < start[node + 1]) {
        const successor = to[next[node]++];
        if (number[successor] === 0) {
          enter(successor);
        } else if (isOpen[successor] && number[successor] < low[node]) {
          low[node] = number[successor];
        }
        continue;
      }
      length--;
      if (length > 0 && low[node] < low[path[length - 1]]) {
        low[path[length - 1]] = low[node];
      }
      if (low[node] === number[node]) {
        const end = nOpen;
        let least = n;
        do {
          nOpen--;
          isOpen[open[nOpen]] = 0;
          least = Math.min(least, open[nOpen]);
        } while (open[nOpen] !== node);
        for (let i = nOpen; i < end; i++) {
          component[open[i]] = least;
        }
      }
    }
  }
  return component;
}

/** Kahn's algorithm over the components: of those all of whose callers are placed, always the one discovered first. */
function sortComponents(n: number, { start, to }: Adjacency, component: Uint32Array): Uint32Array {
  const members = makeAdjacency(
    n,
    component,
    Uint32Array.from(component, (_, i) => i),
  );
  const waiting = new Uint32Array(n); // links into a component from others that are not placed yet
  for (let i = 0; i < n; i++) {
    for (let e = start[i]; e < start[i + 1]; e++) {
      if (component[to[e]] !== component[i]) {
        waiting[component[to[e]]]++;
      }
    }
  }
  const ready = new Heap(n);
  for (let i = 0; i < n; i++) {
    if (component[i] === i && waiting[i] === 0) {
      ready.push(i);
    }
  }
  const order = new Uint32Array(n);
  let placed = 0;
  while (ready.size > 0) {
    const one = ready.pop();
    for (let m = members.start[one]; m < members.start[one + 1]; m++) {
      const node = members.to[m];
      order[placed++] = node;
      for (let e = start[node]; e < start[node + 1]; e++) {
        const other = component[to[e]];
        if (other !== one && --waiting[other] === 0) {
          ready.push(other);
        }
      }
    }
  }
  return order;
}

/** The least number first. */
class Heap {
  size = 0;
  private readonly items: Uint32Array;

  constructor(capacity: number) {
    this.items = new Uint32Array(capacity);
  }

  push(item: number): void {
    const { items } = this;
    let at = this.size++;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent] <= item) {
        break;
      }
      items[at] = items[parent];
      at = parent;
    }
    items[at] = item;
  }

  pop(): number {
    const { items } = this;
    const least = items[0];
    const last = items[--this.size];
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.size) {
        break;
      }
      if (child + 1 < this.size && items[child + 1] < items[child]) {
        child++;
      }
      if (items[child] >= last) {
        break;
      }
      items[at] = items[child];
      at = child;
    }
    items[at] = last;
    return least;
  }
}
