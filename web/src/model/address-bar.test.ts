import fc from "fast-check";
import { expect, test } from "vitest";
import { CALL_FILTERS } from "../api/calls.ts";
import { formatFragment, parseFragment } from "./address-bar.ts";
import {
  CALL_PARTS,
  CALL_SORTS,
  CHART_GROUPS,
  TREE_GROUPS,
  TREE_SORTS,
  COMPARE_PARTS,
  COMPARE_SHOWN,
  INITIAL_STATE,
  LAYOUTS,
  MODES,
  VIEWS,
  type ViewState,
} from "./view-state.ts";

const index = fc.nat(999_999_999);
const indices = fc.array(index, { maxLength: 5 });
// Cameras are told with six digits.
const digits = fc.integer({ min: -99999, max: 99999 }).map((n) => n / 1000);

const cursors = fc.option(fc.record({ thread: index, position: fc.nat(2 ** 31 - 1) }));
const selections = fc.option(fc.record({ kind: fc.constantFrom("function" as const, "block" as const), index }));

const states: fc.Arbitrary<ViewState> = fc.record({
  trace: fc.nat(100),
  process: fc.integer({ min: -1, max: 10000 }),
  threads: fc.option(fc.array(index, { minLength: 1, maxLength: 5 })),
  range: fc.option(
    fc.tuple(fc.nat(10 ** 9), fc.nat(10 ** 6)).map(([start, size]) => [start, start + size + 1] as const),
  ),
  cursor: cursors,
  selection: selections,
  filter: fc.record({
    text: fc.string(),
    hideStubs: fc.boolean(),
    hiddenImages: indices,
    foldedImages: indices,
    foldedFunctions: indices,
    foldLoops: fc.boolean(),
  }),
  view: fc.constantFrom(...VIEWS),
  layout: fc.constantFrom(...LAYOUTS),
  dimensions: fc.constantFrom(2 as const, 3 as const),
  mode: fc.constantFrom(...MODES),
  compare: fc.record({
    trace: fc.integer({ min: -1, max: 100 }),
    process: fc.integer({ min: -1, max: 10000 }),
    part: fc.constantFrom(...COMPARE_PARTS),
    shown: fc.constantFrom(...COMPARE_SHOWN),
    isBeside: fc.boolean(),
    selection: selections,
    cursor: cursors,
  }),
  calls: fc.record({
    isOfAll: fc.boolean(),
    part: fc.constantFrom(...CALL_PARTS),
    by: fc.constantFrom(...CHART_GROUPS),
    sort: fc.constantFrom(...CALL_SORTS),
    isDescending: fc.boolean(),
    text: fc.string(),
    name: fc.option(fc.string()),
    isFailed: fc.boolean(),
    kind: fc.option(fc.constantFrom("system_call", "library", "probe")),
    filter: fc.option(fc.constantFrom(...CALL_FILTERS)),
    treeBy: fc.constantFrom(...TREE_GROUPS),
    treeSort: fc.constantFrom(...TREE_SORTS),
    isTreeDescending: fc.boolean(),
    entity: fc.option(index),
    call: fc.option(index),
  }),
  camera: fc.option(
    fc.record({
      yaw: digits,
      pitch: digits,
      distance: fc.integer({ min: 1, max: 99999 }).map((n) => n / 1000),
      target: fc.tuple(digits, digits, digits),
    }),
  ),
});

test("what a fragment tells is the state it was made of", () => {
  fc.assert(
    fc.property(states, fc.stringMatching(/^[\w-]{1,30}$/), fc.boolean(), (state, token, isLive) => {
      const found = parseFragment(`#${formatFragment(token, state, isLive)}`);
      expect(found).toEqual({ token, state, isLive });
    }),
  );
});

test("of the first state only the token is told", () => {
  expect(formatFragment("abc", INITIAL_STATE)).toBe("token=abc");
});

test("any text gives a state", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const { state } = parseFragment(text);
      expect(VIEWS).toContain(state.view);
    }),
  );
  expect(
    parseFragment("#token=t&view=nowhere&camera=1,2&select=x3&threads=1,b&range=9-2&calls-filter=file").state,
  ).toEqual(INITIAL_STATE);
});
