// A modal dialog of the browser: it keeps the focus inside, Escape closes it, and the focus goes back where it was.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { openDialog } from "../../model/shell-state.ts";

export function Dialog({ name, title, children }: { name: string; title: string; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current!;
    const before = document.activeElement;
    element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement) {
        before.focus();
      }
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog ${name}`}
      aria-label={title}
      onCancel={() => (openDialog.value = null)}
      onClick={(event) => {
        // What is outside of its content is the dialog itself.
        if (event.target === dialog.current) {
          openDialog.value = null;
        }
      }}
    >
      <div class="dialog-content">{children}</div>
    </dialog>
  );
}

export function DialogHead({ title }: { title: string }) {
  return (
    <div class="dialog-head">
      <h2>{title}</h2>
      <button type="button" aria-label="Close" onClick={() => (openDialog.value = null)}>
        ✕
      </button>
    </div>
  );
}
