import { expect, test } from "vitest";
import { describeKeys, keyHelp, nameOf, registerKeys } from "./keys.ts";

const none = { ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

test.each([
  [{ key: "f" }, "f"],
  [{ key: "?", shiftKey: true }, "?"],
  [{ key: "k", ctrlKey: true }, "Ctrl+K"],
  [{ key: "K", ctrlKey: true, shiftKey: true }, "Ctrl+Shift+K"],
  [{ key: "k", metaKey: true }, "Ctrl+K"],
  [{ key: "ArrowLeft", shiftKey: true }, "Shift+ArrowLeft"],
  [{ key: "ArrowLeft", altKey: true }, "Alt+ArrowLeft"],
  [{ key: " ", shiftKey: true }, "Shift+ "],
])("%j is written %s", (pressed, name) => {
  expect(nameOf({ ...none, ...pressed })).toBe(name);
});

test("the help has what is registered, by group, and no more", () => {
  const run = () => undefined;
  const ends = [
    registerKeys("A", [
      { key: "/", what: "Search", run },
      { key: "Ctrl+K", what: "Search", run },
    ]),
    registerKeys("B", [{ key: "f", what: "Fit", run }]),
    describeKeys("A", [{ key: "Tab", what: "On" }]),
  ];
  expect(keyHelp.value).toEqual([
    {
      group: "A",
      lines: [
        { keys: ["/", "Ctrl+K"], what: "Search" },
        { keys: ["Tab"], what: "On" },
      ],
    },
    { group: "B", lines: [{ keys: ["f"], what: "Fit" }] },
  ]);
  ends[0]();
  expect(keyHelp.value.map(({ group }) => group)).toEqual(["B", "A"]);
  ends[1]();
  ends[2]();
  expect(keyHelp.value).toEqual([]);
});

test("a key that runs something is refused for anything else, in all groups", () => {
  const run = () => undefined;
  const end = registerKeys("A", [{ key: "f", what: "Fit", run }]);
  expect(() => registerKeys("B", [{ key: "f", what: "Filter", run }])).toThrow('"f" is for "Fit" and for "Filter"');
  const twice = [{ key: "g", what: "Go", run }].concat({ key: "g", what: "Graph", run });
  expect(() => registerKeys("B", twice)).toThrow('"g" is for "Go" and for "Graph"');
  expect(keyHelp.value.map(({ group }) => group)).toEqual(["A"]);
  end();
  registerKeys("B", [{ key: "f", what: "Filter", run }])();
});

test("a key is told of once in a group, and in as many groups as handle it themselves", () => {
  const ends = [describeKeys("A", [{ key: "f", what: "Fit" }]), describeKeys("B", [{ key: "f", what: "All of it" }])];
  expect(() => describeKeys("A", [{ key: "f", what: "Filter" }])).toThrow('A: the key "f"');
  ends.forEach((end) => end());
});
