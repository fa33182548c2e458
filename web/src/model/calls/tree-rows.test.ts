import fc from "fast-check";
import { expect, test } from "vitest";
import type { TreeRow } from "../../api/calls.ts";
import { aboveOf, countTree, makeNode, rowOfTree, type Tree, TREE_PAGE, type TreeNode } from "./tree-rows.ts";

const row = (call: number): TreeRow => ({
  call,
  name: `f${call}`,
  kind: "library",
  calls: 1,
  failed: 0,
  total: 1,
  own: 1,
  within: 0,
});

/** A node with `total` rows, and others at some of its places, as often as `shape` says. */
function build(shape: readonly number[], depth: number, next: () => number): TreeNode {
  const [total, ...inner] = shape;
  const node = makeNode(0, { parent: 0 }, depth);
  node.total = total;
  for (let place = 0; place < total; place++) {
    const page = Math.floor(place / TREE_PAGE);
    node.pages.set(page, [...(node.pages.get(page) ?? []), row(next())]);
  }
  // From the last place on: in the order of opening they are not in that of places.
  inner.forEach((n, index) => {
    const place = total - 1 - index * 2;
    if (place >= 0) {
      node.open.set(place, build([n], depth + 1, next));
    }
  });
  return node;
}

/** What there is to be listed, walked from above. */
function walk(node: TreeNode): [number | null, number][] {
  return Array.from({ length: node.total ?? 1 }, (_, place) => {
    const found = node.pages.get(Math.floor(place / TREE_PAGE))?.[place % TREE_PAGE];
    const inner = node.open.get(place);
    const own: [number | null, number][] = [[found?.call ?? null, node.depth]];
    return [...own, ...(inner ? walk(inner) : [])];
  }).flat();
}

test("rows of the list are the tree from above, whatever is open", () => {
  const shapes = fc.array(fc.array(fc.integer({ min: 0, max: 230 }), { minLength: 1, maxLength: 4 }), { maxLength: 3 });
  fc.assert(
    fc.property(shapes, (wanted) => {
      let number = 0;
      const tree: Tree = {
        threads: wanted.map((shape, tid) => ({
          thread: { process: 0, tid, calls: 1, failed: 0, total: 1, within: 1 },
          node: tid % 2 === 0 ? build(shape, 1, () => number++) : null,
        })),
      };
      const listed = tree.threads.flatMap(({ node }) => [
        [null, 0] as [number | null, number],
        ...(node ? walk(node) : []),
      ]);
      expect(countTree(tree)).toBe(listed.length);
      listed.forEach(([call, depth], index) => {
        const found = rowOfTree(tree, index)!;
        expect([found.kind === "call" ? (found.row?.call ?? null) : null, found.depth]).toEqual([call, depth]);
      });
      expect(rowOfTree(tree, listed.length)).toBeNull();
      if (listed.length > 0) {
        const last = listed.length - 1;
        const depth = listed[last][1];
        expect(aboveOf(tree, last)).toBe(
          listed.reduce((best, one, index) => (one[1] < depth && index < last ? index : best), -1),
        );
      }
    }),
  );
});

test("what is not loaded has one row", () => {
  const tree: Tree = {
    threads: [
      { thread: { process: 3, tid: 7, calls: 1, failed: 0, total: 1, within: 1 }, node: makeNode(3, { thread: 7 }, 1) },
    ],
  };
  expect(countTree(tree)).toBe(2);
  expect(rowOfTree(tree, 1)).toMatchObject({ kind: "call", row: null, depth: 1 });
});
