import { expect, test, vi } from "vitest";
import { bindKeys, describeKeys, keyHelp, nameOf, registerKeys } from "./keys.ts";

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
    registerKeys("Everywhere", [
      { key: "/", what: "Search", run },
      { key: "Ctrl+K", what: "Search", run },
    ]),
    registerKeys("Graph", [{ key: "f", what: "Fit", run }]),
    describeKeys("Everywhere", [{ key: "Tab", what: "On" }]),
  ];
  expect(keyHelp.value).toEqual([
    {
      group: "Everywhere",
      lines: [
        { keys: ["/", "Ctrl+K"], what: "Search" },
        { keys: ["Tab"], what: "On" },
      ],
    },
    { group: "Graph", lines: [{ keys: ["f"], what: "Fit" }] },
  ]);
  ends[0]();
  expect(keyHelp.value.map(({ group }) => group)).toEqual(["Everywhere", "Graph"]);
  ends[1]();
  ends[2]();
  expect(keyHelp.value).toEqual([]);
});

test("a key that runs something is refused for anything else, in all groups", () => {
  const run = () => undefined;
  const end = registerKeys("Everywhere", [{ key: "f", what: "Fit", run }]);
  expect(() => registerKeys("Graph", [{ key: "f", what: "Filter", run }])).toThrow('"f" is for "Fit" and for "Filter"');
  const twice = [{ key: "g", what: "Go", run }].concat({ key: "g", what: "Graph", run });
  expect(() => registerKeys("Graph", twice)).toThrow('"g" is for "Go" and for "Graph"');
  expect(keyHelp.value.map(({ group }) => group)).toEqual(["Everywhere"]);
  end();
  registerKeys("Graph", [{ key: "f", what: "Filter", run }])();
});

test("a key is told of once in a group, and in as many groups as handle it themselves", () => {
  const ends = [
    describeKeys("Everywhere", [{ key: "f", what: "Fit" }]),
    describeKeys("Graph", [{ key: "f", what: "All of it" }]),
  ];
  expect(() => describeKeys("Everywhere", [{ key: "f", what: "Filter" }])).toThrow('Everywhere: the key "f"');
  ends.forEach((end) => end());
});

function press(key: string, held: Partial<typeof none> = {}) {
  const event = { key, ...none, ...held, preventDefault: vi.fn(), stopPropagation: vi.fn() };
  return event as typeof event & KeyboardEvent;
}

test("what a part of the page binds is in the help, and done on what it hands over", () => {
  const done: string[] = [];
  const pressKey = bindKeys<{ name: string; isThere: boolean }>("Listing", [
    { key: "ArrowUp", what: "Up or down", run: ({ name }) => done.push(`up ${name}`) },
    { key: "ArrowDown", what: "Up or down", run: ({ name }) => done.push(`down ${name}`) },
    { key: "Enter", what: "Open", when: ({ isThere }) => isThere, run: ({ name }) => done.push(`open ${name}`) },
    { key: "Escape", what: "Close", run: ({ name }) => done.push(`close ${name}`), goesOn: true },
  ]);
  expect(keyHelp.value.filter(({ group }) => group === "Listing")).toEqual([
    {
      group: "Listing",
      lines: [
        { keys: ["ArrowUp", "ArrowDown"], what: "Up or down" },
        { keys: ["Enter"], what: "Open" },
        { keys: ["Escape"], what: "Close" },
      ],
    },
  ]);
  const heardBy = (event: ReturnType<typeof press>, isThere: boolean) => {
    pressKey(event, { name: "it", isThere });
    expect(event.stopPropagation.mock.calls.length).toBe(event.preventDefault.mock.calls.length);
    return event.preventDefault.mock.calls.length > 0 ? "it" : "others";
  };
  expect(heardBy(press("ArrowDown"), false)).toBe("it");
  expect(heardBy(press("Enter"), true)).toBe("it");
  expect(heardBy(press("Enter"), false)).toBe("others");
  expect(heardBy(press("Escape"), false)).toBe("others");
  expect(heardBy(press("x"), false)).toBe("others");
  expect(done).toEqual(["down it", "open it", "close it"]);
});

test("what is held down with a key counts where a binding has it, and otherwise where the part says so", () => {
  const done: string[] = [];
  const bindings = [
    { key: "ArrowUp", what: "Up", run: () => done.push("up") },
    { key: "Shift+ArrowUp", what: "Farther up", run: () => done.push("farther") },
    { key: "Enter", what: "Open", run: () => done.push("open") },
    { key: "Ctrl+Z", what: "Back", run: () => done.push("back") },
  ];
  const strict = bindKeys<null>("Function", bindings);
  const lenient = bindKeys<null>("Processes", bindings, { ignoresModifiers: true });
  const all = [
    press("ArrowUp"),
    press("ArrowUp", { shiftKey: true }),
    press("ArrowUp", { ctrlKey: true }),
    press("ArrowUp", { altKey: true, shiftKey: true }),
    press("Enter", { shiftKey: true }),
    press("Enter", { metaKey: true }),
    press("z", { metaKey: true }),
    press("z", { ctrlKey: true, shiftKey: true }),
    press("z"),
  ];
  all.forEach((event) => strict(event, null));
  expect(done.splice(0)).toEqual(["up", "farther", "open", "back"]);
  all.forEach((event) => lenient(event, null));
  expect(done).toEqual(["up", "farther", "up", "farther", "open", "open", "back", "back"]);
});

test("several parts of a group may have a key do the same, and nothing else", () => {
  const run = () => undefined;
  bindKeys("Compare", [{ key: "f", what: "Fit", run }]);
  bindKeys("Compare", [{ key: "f", what: "Fit", run }]);
  expect(() => bindKeys("Compare", [{ key: "f", what: "Filter", run }])).toThrow('"f" is for "Fit" and for "Filter"');
  const twice = { key: "g", what: "Go", run };
  expect(() => bindKeys("Compare", [twice, twice])).toThrow('"g" is for "Go" and for "Go"');
});
