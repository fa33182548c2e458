// Asks before clew leaves a program that runs, or ends it: neither can be undone.
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { command, programStatus } from "../../model/live/program.ts";
import { isLive } from "../../model/session.ts";
import { openDialog } from "../../model/shell-state.ts";
import { Dialog, DialogHead } from "../shell/dialog.tsx";

export function DetachDialog() {
  return (
    <Question name="detach" title="Detach from the program?" act="Detach">
      clew leaves it and it runs on without being recorded. What was recorded until now stays.
    </Question>
  );
}

export function KillDialog() {
  return (
    <Question name="kill" title="Kill the program?" act="Kill">
      It is ended at once (SIGKILL) and can save nothing: the session is terminated. What was recorded until now becomes
      its trace.
    </Question>
  );
}

interface QuestionProps {
  name: "detach" | "kill";
  title: string;
  act: string;
  children: ComponentChildren;
}

function Question({ name, title, act, children }: QuestionProps) {
  const isOver = !isLive.value;
  const status = programStatus.value;
  useEffect(() => {
    if (isOver) {
      openDialog.value = null;
    }
  }, [isOver]);
  return (
    <Dialog name={name} title={title}>
      <DialogHead title={title} />
      {status && (
        <p>
          Process {status.pid} <span class="mono">{status.executable}</span>
        </p>
      )}
      <p>{children}</p>
      <div class="actions">
        <button type="button" onClick={() => (openDialog.value = null)}>
          Cancel
        </button>
        <button
          type="button"
          class="dangerous"
          onClick={() => {
            openDialog.value = null;
            void command({ command: name });
          }}
        >
          {act}
        </button>
      </div>
    </Dialog>
  );
}
