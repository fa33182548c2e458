// A small panel over the main view that is not modal: Escape closes it, and the focus goes back to what opened it.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { bindKeys } from "../../model/keys.ts";
import { openPopover } from "../../model/shell-state.ts";

const pressKey = bindKeys<KeyboardEvent>(
  "Panels",
  [
    {
      key: "Escape",
      what: "Close the panel over the view",
      // A field for searching is emptied all the same.
      goesOn: true,
      run: (event) => {
        event.stopPropagation();
        openPopover.value = null;
      },
    },
  ],
  { ignoresModifiers: true },
);

export function Popover({ title, children }: { title: string; children: ComponentChildren }) {
  const panel = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    panel.current!.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);
  return (
    <div
      ref={panel}
      class="popover"
      role="dialog"
      aria-label={title}
      tabIndex={-1}
      onKeyDown={(event) => pressKey(event, event)}
    >
      <div class="dialog-head">
        <h2>{title}</h2>
        <button type="button" aria-label="Close" onClick={() => (openPopover.value = null)}>
          ✕
        </button>
      </div>
      {children}
    </div>
  );
}
