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
                    {readable(keys).map((key) => (
                      <kbd key={key}>{key}</kbd>
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

/** "Shift+ArrowLeft" as "Shift ←", with "Shift+ArrowRight" behind it as "Shift ←→". */
function readable(keys: readonly string[]): string[] {
  const written: string[] = [];
  for (const key of keys) {
    const parts = key === "+" ? ["+"] : key.split("+");
    const names = parts.map((part) => NAMES[part] ?? (part || "+"));
    const held = names.slice(0, -1).join(" ");
    const before = written.at(-1);
    if (held && key.includes("Arrow") && before?.startsWith(`${held} `)) {
      written[written.length - 1] = before + names.at(-1);
    } else {
      written.push(names.join(" "));
    }
  }
  return written;
}
