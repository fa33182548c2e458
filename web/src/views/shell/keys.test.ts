// All keys of the page together: where two are for one key, binding or registering them throws.
import { expect, test } from "vitest";
import { KEY_GROUPS, keyHelp } from "../../model/keys.ts";
import { registerProgramKeys } from "../live/program-keys.ts";
import { registerTimelineKeys } from "../timeline/timeline-keys.ts";
import "./app.tsx";
import { registerShellKeys } from "./shell-keys.ts";

registerShellKeys();
registerTimelineKeys();
registerProgramKeys();

test("no key of the page is for two things, and every part has some", () => {
  expect(keyHelp.value.map(({ group }) => group)).toEqual(KEY_GROUPS);
});

test.each([
  ["Tables", ["ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End", "Enter"]],
  ["Graph", ["+", "=", "-", "Shift+ArrowUp", "Ctrl+ArrowDown", "Ctrl+Z", "R"]],
  ["Function", ["=", "Shift+ArrowDown", "Home"]],
  ["Listing", ["PageDown", "g"]],
  ["Processes", ["PageUp", "End", " ", "Shift+Enter", "Ctrl+Enter", "Ctrl+ "]],
  ["Calls over time", ["Shift+ArrowLeft", "Enter", "Escape"]],
])("keys that %s handles are in its help", (group, keys) => {
  const told = keyHelp.value.find((one) => one.group === group)?.lines.flatMap((line) => line.keys);
  expect(told).toEqual(expect.arrayContaining(keys));
});
