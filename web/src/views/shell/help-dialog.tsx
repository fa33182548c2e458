// Every key of the page, by group.
import { keyHelp } from "../../model/keys.ts";
import { Dialog, DialogHead } from "./dialog.tsx";

const NAMES: Record<string, string> = {
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  " ": "Space",
  Escape: "Esc",
  PageUp: "Page ↑",
  PageDown: "Page ↓",
};

export function HelpDialog() {
  return (
    <Dialog name="help" title="Keys">
      <DialogHead title="Keys" />
      <div class="key-groups">
        {keyHelp.value.map(({ group, lines }) => (
          <section key={group} aria-label={group}>
            <h3>{group}</h3>
            <dl>
              {lines.map(({ keys, what }) => (
                <div key={what}>
                  <dt>
                    {keys.map((key) => (
                      <kbd key={key}>{readable(key)}</kbd>
                    ))}
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

/** "Shift+ArrowLeft" as "Shift ←". */
function readable(key: string): string {
  const parts = key === "+" ? ["+"] : key.split("+");
  return parts.map((part) => NAMES[part] ?? (part || "+")).join(" ");
}
