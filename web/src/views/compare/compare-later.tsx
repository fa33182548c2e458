// Two traces beside each other, which few look at: loaded when it is shown first.
import { describeKeys } from "../../model/keys.ts";
import { later } from "../shell/later.tsx";
import { DESCRIBED_KEYS } from "./compare-keys.ts";

describeKeys("Compare", DESCRIBED_KEYS);

export const CompareFunctionsPanel = later(() =>
  import("./compare-functions-panel.tsx").then((part) => part.CompareFunctionsPanel),
);
export const CompareView = later(() => import("./compare-view.tsx").then((part) => part.CompareView));
