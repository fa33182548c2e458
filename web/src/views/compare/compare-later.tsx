// Two traces beside each other, which few look at: loaded when it is shown first.
import { later } from "../shell/later.tsx";

export const CompareFunctionsPanel = later(() =>
  import("./compare-functions-panel.tsx").then((part) => part.CompareFunctionsPanel),
);
export const CompareView = later(() => import("./compare-view.tsx").then((part) => part.CompareView));
