// The keys of the shell: views, search, panels.
import { describeKeys, registerKeys } from "../../model/keys.ts";
import { isLive } from "../../model/session.ts";
import { settings, updateSettings } from "../../model/settings.ts";
import { openDialog, openPopover, togglePopover } from "../../model/shell-state.ts";
import { selection, update, VIEWS, type View } from "../../model/view-state.ts";

export const VIEW_NAMES: Record<View, string> = {
  graph: "Graph",
  function: "Function",
  listing: "Listing",
  processes: "Processes",
  calls: "Calls",
  compare: "Compare",
};

export function registerShellKeys(): void {
  registerKeys("Everywhere", [
    ...VIEWS.map((view, index) => ({
      key: String(index + 1),
      what: `View: ${VIEW_NAMES[view]}`,
      run: () => update({ view }),
    })),
    { key: "/", what: "Search", run: () => open("search") },
    { key: "Ctrl+K", what: "Search", run: () => open("search") },
    { key: "h", what: "To the table of functions", run: () => focusOn(".functions .list") },
    { key: "m", what: "To the main view", run: () => focusOn(".main") },
    { key: "i", what: "Filter and fold", run: () => togglePopover("filter") },
    { key: "u", what: "Highlight sets", run: () => togglePopover("highlights") },
    { key: "e", what: "Export: pictures, videos, tables", run: () => open("export") },
    { key: "t", what: "Dark or light", run: toggleTheme },
    { key: "?", what: "This help", run: () => (openDialog.value = "help") },
    { key: "Escape", what: "Close what is open, select nothing, or no range of time", run: close },
  ]);
  describeKeys("Everywhere", [
    { key: "Alt+ArrowLeft", what: "Back to what was looked at before" },
    { key: "Tab", what: "To the next part of the page" },
  ]);
}

export function toggleTheme(): void {
  updateSettings({ theme: settings.value.theme === "dark" ? "light" : "dark" });
}

/** What is searched and exported is a finished trace. */
function open(dialog: "search" | "export"): void {
  if (!isLive.peek()) {
    openDialog.value = dialog;
  }
}

function focusOn(selector: string): void {
  if (selector.startsWith(".functions")) {
    updateSettings({ showsFunctions: true });
  }
  requestAnimationFrame(() => document.querySelector<HTMLElement>(selector)?.focus());
}

function close(): void {
  if (openPopover.value !== null) {
    openPopover.value = null;
  } else if (selection.peek()) {
    update({ selection: null });
  } else {
    update({ range: null });
  }
}
