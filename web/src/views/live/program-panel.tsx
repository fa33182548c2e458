// Commands to the program that runs, beside its picture: whether it runs, and what makes it stop, go on, or end.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import {
  command,
  isCommanding,
  isStill,
  moveThread,
  programError,
  programNote,
  programState,
  programStatus,
  watchProgram,
} from "../../model/live/program.ts";
import { STATE_WORDS } from "../../model/live/program-state.ts";
import { openDialog } from "../../model/shell-state.ts";
import { BreakpointList } from "./breakpoint-list.tsx";
import { registerProgramKeys } from "./program-keys.ts";
import { RecordedChoice } from "./recorded-choice.tsx";
import { StoppedThreads } from "./stopped-threads.tsx";

export function ProgramPanel() {
  const [isOpen, setOpen] = useState(true);
  return (
    <details class="program" open onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h2>Program</h2>
      </summary>
      {isOpen && <Commands />}
    </details>
  );
}

function Commands() {
  useEffect(() => {
    const ends = [watchProgram(), registerProgramKeys()];
    return () => ends.forEach((end) => end());
  }, []);
  const state = programState.value;
  const isThere = state !== "gone" && state !== "unknown";
  const status = programStatus.value;
  return (
    <div role="group" aria-label="Program" data-program={state} aria-busy={isCommanding.value}>
      <p role="status" class="program-state">
        {STATE_WORDS[state]}
      </p>
      <div class="actions">
        <Act can={isThere && !isStill.value} keys="F8" act={() => void command({ command: "pause" })}>
          Pause program
        </Act>
        <Act can={isStill.value || state === "waiting"} keys="F8" act={() => void command({ command: "continue" })}>
          Continue program
        </Act>
        <Act can={isStill.value} keys="F9" act={() => moveThread("step")}>
          Step
        </Act>
        <Act can={isStill.value} keys="F10" act={() => moveThread("next")}>
          Step over
        </Act>
        <Act can={isThere} title="Leave the program; it runs on" act={() => (openDialog.value = "detach")}>
          Detach …
        </Act>
        <Act can={isThere} title="End the program: terminate the session" act={() => (openDialog.value = "kill")}>
          Kill …
        </Act>
      </div>
      {programError.value && (
        <p role="alert" class="program-error">
          {programError.value}
        </p>
      )}
      <p role="status" class="quiet">
        {programNote.value}
      </p>
      {status && isThere && (
        <>
          <StoppedThreads status={status} />
          <BreakpointList breakpoints={status.breakpoints} />
          <RecordedChoice status={status} />
        </>
      )}
    </div>
  );
}

interface ActProps {
  can: boolean;
  act: () => void;
  keys?: string;
  title?: string;
  children: ComponentChildren;
}

/** A button that keeps the focus also where it can do nothing at the moment. */
function Act({ can, act, keys, title, children }: ActProps) {
  return (
    <button
      type="button"
      aria-disabled={!can}
      aria-keyshortcuts={keys}
      title={title ?? `Key ${keys}`}
      onClick={() => can && act()}
    >
      {children}
    </button>
  );
}
