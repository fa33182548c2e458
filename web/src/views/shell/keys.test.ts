// All keys of the page together: where two are for one key, registering them throws.
import { expect, test } from "vitest";
import { keyHelp } from "../../model/keys.ts";
import { registerTimelineKeys } from "../timeline/timeline-keys.ts";
import { registerShellKeys } from "./shell-keys.ts";

test("no key of the page is for two things", () => {
  registerShellKeys();
  registerTimelineKeys();
  const groups = keyHelp.value.map(({ group }) => group);
  expect(groups).toEqual([
    "Everywhere",
    "Tables",
    "Graph",
    "Function",
    "Listing",
    "Processes",
    "Calls",
    "Compare",
    "Lanes of the timeline",
    "Timeline",
  ]);
});
